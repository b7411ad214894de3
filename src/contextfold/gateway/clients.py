"""What clients need to be told so that they use the gateway: ``contextfold gateway --print-config CLIENT``."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def _claude(url: str) -> str:
    return f'# Claude Code: in the shell, or in the "env" of ~/.claude/settings.json\nexport ANTHROPIC_BASE_URL={url}\n'


def _codex(url: str) -> str:
    return (
        "# Codex: in ~/.codex/config.toml (it does not take its address from the environment)\n"
        'model_provider = "contextfold"\n\n'
        "[model_providers.contextfold]\n"
        'name = "contextfold"\n'
        f'base_url = "{url}/v1"\n'
        'env_key = "OPENAI_API_KEY"\n'
        'wire_api = "responses"\n'
        "supports_websockets = false\n"
    )


def _openai(url: str) -> str:
    return f"# OpenAI's SDKs and what is built on them\nexport OPENAI_BASE_URL={url}/v1\n"


def _anthropic(url: str) -> str:
    return f"# Anthropic's SDKs and what is built on them\nexport ANTHROPIC_BASE_URL={url}\n"


def _gemini(url: str) -> str:
    return (
        "# Google's SDKs and what is built on them. Gemini CLI also wants, in ~/.gemini/settings.json,\n"
        '#   {"security": {"auth": {"selectedType": "gemini-api-key"}}}\n'
        f"export GOOGLE_GEMINI_BASE_URL={url}\n"
    )


def _cline(url: str) -> str:
    return (
        "# Cline's command line (it does not take its address from the environment), with your key and model\n"
        f'cline auth -p openai-compatible -k "$OPENAI_API_KEY" -m gpt-5 -b {url}/v1\n'
    )


def _cn(url: str) -> str:
    return (
        "# Continue's cn: in ~/.continue/config.yaml, or in a file that --config names\n"
        "# (it does not take its address from the environment)\n"
        "name: contextfold\n"
        "version: 1.0.0\n"
        "schema: v1\n"
        "models:\n"
        "  - name: gpt-5\n"
        "    provider: openai\n"
        "    model: gpt-5\n"
        "    apiKey: ${{ secrets.OPENAI_API_KEY }}\n"
        f"    apiBase: {url}/v1\n"
    )


def _litellm(url: str) -> str:
    return (
        "# litellm's proxy behind which the gateway stands: in its config.yaml, for each model\n"
        "model_list:\n"
        "  - model_name: gpt-5\n"
        "    litellm_params:\n"
        "      model: openai/gpt-5\n"
        f"      api_base: {url}/v1\n"
        "      api_key: os.environ/OPENAI_API_KEY\n"
        "  - model_name: claude-sonnet-4-5\n"
        "    litellm_params:\n"
        "      model: anthropic/claude-sonnet-4-5\n"
        f"      api_base: {url}\n"
        "      api_key: os.environ/ANTHROPIC_API_KEY\n"
        "# The other way round, litellm behind the gateway:\n"
        "#   contextfold gateway --upstream openai=http://localhost:4000/v1 --upstream anthropic=http://localhost:4000\n"
    )


CLIENTS: Mapping[str, Callable[[str], str]] = {
    "claude": _claude,
    "codex": _codex,
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "cline": _cline,
    "cn": _cn,
    "litellm": _litellm,
}
