// Loaded by `contextfold run -- pi`: pi takes the addresses of its providers from extensions, not from the environment.
export default function (pi) {
  const { OPENAI_BASE_URL, ANTHROPIC_BASE_URL } = process.env;
  if (ANTHROPIC_BASE_URL) pi.registerProvider("anthropic", { baseUrl: ANTHROPIC_BASE_URL });
  if (OPENAI_BASE_URL) pi.registerProvider("openai", { baseUrl: OPENAI_BASE_URL });
}
