// Loaded by `contextfold run -- pi`: pi takes the addresses of its providers from extensions, not from the environment.
export default function (pi) {
  const { CONTEXTFOLD_PI_ADDRESSES, OPENAI_BASE_URL, ANTHROPIC_BASE_URL } = process.env;
  // What pi's own file of models names has a path of its own through the gateway.
  const told = CONTEXTFOLD_PI_ADDRESSES
    ? JSON.parse(CONTEXTFOLD_PI_ADDRESSES)
    : { openai: OPENAI_BASE_URL, anthropic: ANTHROPIC_BASE_URL };
  for (const [name, baseUrl] of Object.entries(told)) if (baseUrl) pi.registerProvider(name, { baseUrl });
}
