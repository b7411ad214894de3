"""Which answers may become a summary, and how answers are read from what users plug in."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextfold import Compactor
from contextfold.errors import PolicyError
from contextfold.ports import AsyncPorts, SyncPorts, run
from contextfold.summary.accept import TINY_INPUT, clean, rejection
from contextfold.summary.summarizer import Answer, Summarizer, as_summarizer, to_answer
from effort import examples

GOOD = "## Goal\nShip the parser.\n\n## Done\nsrc/parser.py handles nested lists; 12 tests pass."


def count(text: str) -> int:
    return math.ceil(len(text) / 4)


def judged(answer: Answer | str, input_tokens: int = 5_000) -> str | None:
    return rejection(answer if isinstance(answer, Answer) else Answer(answer), input_tokens=input_tokens, count=count)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "The user wants a parser. No headings at all, and that is fine.",
        "Error handling was added to the client; the previous conversation log moved to docs.",
        "No conversation state is kept by the server. The user decided on tokens. Open: rotation.",
        "目标：完成解析器。已完成：测试通过。",
        "Fixed the 404 page.",
        "I cannot reproduce bug 17 (user's words); the fix for it was reverted in commit 4f2a. " * 4,
    ],
)
def test_an_honest_summary_is_accepted_whatever_its_shape(text: str) -> None:
    """Missing headings lose nothing."""
    assert judged(text) is None
    assert judged(Answer(text, finish_reason="stop")) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "  \n\t", "...", "---", "```\n```", "<think>hm</think>", "<summary>\n</summary>"),
        *("\u200b", "\ufeff\u2060 \u200e", "…", "。", "—", "!!!", "👍"),
    ],
)
def test_a_blank_answer_is_rejected(text: str) -> None:
    assert judged(text) == "it is blank"


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete"])
def test_an_answer_that_was_cut_off_is_rejected(reason: str) -> None:
    assert judged(Answer(GOOD, finish_reason=reason)) == f"it was cut off ({reason.lower()})"


def test_a_tool_call_is_rejected_even_with_words_beside_it() -> None:
    assert judged(Answer(GOOD, has_tool_calls=True)) == "it calls a tool"
    assert judged(Answer("", finish_reason="tool_use")) == "it calls a tool"


@pytest.mark.parametrize(
    "call",
    [
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "src/app.py"}}\n</tool_call>',
        "<think>I should look.</think>\n<tool_call>\n<function=read_file>\n</function>\n</tool_call>",
        '<function_calls>\n<invoke name="read_file">\n</invoke>\n</function_calls>',
        "<function=read_file>src/app.py</function>",
        '[TOOL_CALLS][{"name": "read_file", "arguments": {}}]',
        '<|python_tag|>read_file.call(path="src/app.py")',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file",
    ],
)
def test_a_tool_call_that_a_server_left_in_the_text_is_rejected(call: str) -> None:
    """Small models go on with the conversation that they are to sum up, and many servers do not read their calls."""
    assert judged(call) == "it calls a tool"
    assert judged(f"The agent wrote {call} and got no answer; src/app.py is still to be read.") is None


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "SAFETY", "guardrail_intervened"])
def test_a_filtered_answer_is_rejected(reason: str) -> None:
    assert judged(Answer(GOOD, finish_reason=reason)) == f"it was refused ({reason.lower()})"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot summarize this conversation.",
        "As an AI language model, I am unable to do this.",
        "抱歉，我无法完成这个请求。",
        "申し訳ありませんが、お手伝いできません。",
    ],
)
def test_a_refusal_is_rejected(text: str) -> None:
    assert str(judged(text)).startswith("it is a refusal")


@pytest.mark.parametrize(
    "text",
    [
        "Previous conversation was too long to summarize.",
        "No previous conversation history.",
        "The earlier messages were omitted",
        "Conversation history truncated.",
        "Nothing to summarize.",
        "Summary unavailable.",
        "[summary]",
        "N/A",
        "None",
    ],
)
def test_a_placeholder_never_becomes_a_summary(text: str) -> None:
    assert str(judged(text)).startswith("it is a placeholder")


OPENINGS = """
Hello! How can I help you today?
Hi there! How can I assist you with your project?
What would you like me to do next?
Sure! Here is the summary:
Here's a concise summary of our conversation so far:
Hallo! Wie kann ich Ihnen heute helfen?
Was kann ich für Sie tun?
Hier ist die Zusammenfassung des Gesprächs:
Bonjour ! Comment puis-je vous aider aujourd'hui ?
Voici un résumé de la conversation :
¡Hola! ¿En qué puedo ayudarte hoy?
Olá! Como posso ajudar você hoje?
Ciao! Come posso aiutarti?
Hallo! Waarmee kan ik je vandaag helpen?
Здравствуйте! Чем я могу вам помочь?
Cześć! W czym mogę ci pomóc?
你好！请问有什么可以帮您的吗？
好的，以下是对话的总结：
こんにちは！何かお手伝いできることはありますか？
以下は会話の要約です：
안녕하세요! 무엇을 도와드릴까요?
다음은 대화 요약입니다:
"""

ABOUT_HELP = """
The user asked how they can help with the login bug. Next: read auth.py.
How can I help you today? was the agent's first line; then the user asked for the tests of auth.py.
Here is the summary: auth.py was read, and the tests fail on line 3.
What would you like me to do is asked before each deployment to prod-7.
Der Nutzer fragt, wie er helfen kann; offen ist der Test von auth.py.
用户问：有什么可以帮忙的？随后修改了 auth.py。
ユーザーは auth.py の修正について何か手伝えるか尋ねた。
"""


@pytest.mark.parametrize("text", OPENINGS.strip().split("\n"))
def test_the_beginning_of_a_chat_never_becomes_a_summary(text: str) -> None:
    """A small model takes the prompt for one, or announces what it then does not say."""
    assert str(judged(text)).startswith("it sums up nothing")


@pytest.mark.parametrize("text", ABOUT_HELP.strip().split("\n"))
def test_a_summary_may_tell_of_such_words(text: str) -> None:
    assert judged(text) is None


NO_SUMMARY = """
Summarization failed.
Unable to summarize the conversation.
Could not generate a summary.
无法总结。
对话过长，无法总结
之前的对话太长，无法总结。
由于对话太长，无法总结。
无法对对话进行总结
没有可总结的内容。
没有对话历史。
暂无摘要
摘要生成失败。
【摘要】
（省略）
无
很抱歉，我无法总结这段对话。
错误：请求超时
系统繁忙，请稍后再试。
生成摘要时出错：连接超时
無法總結。
對不起，我無法完成這個請求。
以前の会話は長すぎて要約できませんでした。
会話が長すぎるため、要約できません。
要約できませんでした。
要約の作成に失敗しました。
要約する内容がありません。
【要約】
該当なし
エラーが発生しました。
すみません、その依頼にはお応えできません。
이전 대화가 너무 길어서 요약할 수 없습니다.
요약에 실패했습니다.
요약할 내용이 없습니다.
죄송하지만 도와드릴 수 없습니다.
오류가 발생했습니다.
Es tut mir leid, das kann ich nicht.
Die bisherige Unterhaltung ist zu lang für eine Zusammenfassung.
Zusammenfassung nicht verfügbar.
Fehler: Zeitüberschreitung
Désolé, je ne peux pas vous aider.
La conversation précédente était trop longue pour être résumée.
Aucun historique à résumer.
Lo siento, no puedo ayudar con eso.
La conversación anterior era demasiado larga para resumirla.
No hay nada que resumir.
Desculpe, não posso ajudar com isso.
Não foi possível gerar um resumo.
Mi dispiace, non posso aiutarti.
Niente da riassumere.
Het spijt me, daar kan ik niet bij helpen.
Samenvatting niet beschikbaar.
Извините, я не могу помочь с этим.
Не удалось создать резюме.
Przepraszam, nie mogę w tym pomóc.
Brak podsumowania.
क्षमा करें, मैं यह नहीं कर सकता।
पिछली बातचीत बहुत लंबी थी, सारांश नहीं बन सका।
عذرًا، لا أستطيع المساعدة في ذلك.
المحادثة السابقة طويلة جدًا ولا يمكن تلخيصها.
"""

SHORT_SUMMARIES = """
用户在检查模块，目前都正常。
用户说模型无法总结长文档，于是改为分块处理。
没有历史数据可迁移，直接新建了表。
摘要模块失败三次后修好了。
内容已删除三章，剩余两章待审。
请求失败的原因是证书过期，已更换。
消息太长时分块发送，已实现。
会話の履歴は Redis に保存することに決めた。
会話が長すぎると言われた利用者のために分割処理を追加した。
履歴は削除せず残す。
エラー処理をクライアントに追加した。
특별한 문제 없음. 다음은 배포.
이전 메시지는 삭제하지 않고 보관한다.
요약 기능을 구현했고 테스트가 통과했다.
Keine neuen Abhängigkeiten; der Parser ist fertig.
Pas de message d'erreur, le test passe.
No hay errores; falta desplegar.
Nessun errore; resta la documentazione.
Não há erros; falta publicar.
Geen fouten meer; de release volgt.
Нет ошибок, осталось выпустить релиз.
Brak błędów, zostało wydanie.
"""


@pytest.mark.parametrize("text", NO_SUMMARY.strip().splitlines())
def test_what_sums_up_nothing_is_refused_in_every_language(text: str) -> None:
    """A summarizer that is asked in Chinese says in Chinese that it could not do it."""
    assert judged(text)
    history = [{"role": "user", "content": f"Look at room {n}, and say what is in it. " * 20} for n in range(15)]
    out = Compactor(window=1_500, summarizer=lambda prompt: text).compact(history)
    assert text not in out.summary.text


@pytest.mark.parametrize("text", SHORT_SUMMARIES.strip().splitlines())
def test_a_short_summary_is_accepted_in_every_language(text: str) -> None:
    assert judged(text) is None


@pytest.mark.parametrize("text", ["Summary", "Summary.", "summary", "Conversation summary", "ok", "Generated summary"])
def test_the_short_answer_of_a_test_double_will_do(text: str) -> None:
    assert judged(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Error generating summary: Connection reset by peer",
        "Error code: 429 - rate limit",
        "Error: overloaded",
        '{"error": {"message": "boom"}}',
        "Internal Server Error",
        "503 Service Unavailable",
        "Traceback (most recent call last): ...",
    ],
)
def test_an_error_text_never_becomes_a_summary(text: str) -> None:
    assert str(judged(text)).startswith("it is an error text")


def test_an_answer_longer_than_its_input_is_rejected_unless_the_input_is_tiny() -> None:
    long = prose(7, 300)
    assert str(judged(long, count(long) - 1)).startswith("it is longer than its input (")
    assert judged(long, count(long)) is None
    assert judged(long, TINY_INPUT - 1) is None


def test_thoughts_and_wrappers_are_not_part_of_the_summary() -> None:
    assert clean(f"<think>first\nsecond</think>\n\n<summary>\n{GOOD}\n</summary>\n") == GOOD
    assert clean("  the <summary> tag is discussed  ") == "the <summary> tag is discussed"


# ---- what can be a summarizer ----


class Plain:
    def complete(self, prompt: str) -> str:
        return f"plain {prompt}"


class Rich(Plain):
    window = 4_000


class Colorful:
    window = None

    async def complete(self, prompt: str) -> Answer:
        return Answer(f"async {prompt}")


class Model:
    """Shaped like a LangChain chat model."""

    profile: ClassVar = {"max_input_tokens": 128_000}

    def invoke(self, prompt: str) -> Any:
        return SimpleNamespace(
            content=[{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "model "}, prompt, 7],
            response_metadata={"finish_reason": "stop"},
            tool_calls=[],
            usage_metadata={"input_tokens": 12, "output_tokens": 3},
        )


async def later(prompt: str) -> str:
    return f"later {prompt}"


@pytest.mark.parametrize(
    ("value", "text", "window"),
    [
        (lambda prompt: f"called {prompt}", "called x", None),
        (later, "later x", None),
        (Plain(), "plain x", None),
        (Rich(), "plain x", 4_000),
        (Colorful(), "async x", None),
        (Model(), "model x", 128_000),
        (SimpleNamespace(bound=Model(), invoke=lambda prompt: f"bound {prompt}"), "bound x", 128_000),
        (SimpleNamespace(invoke=lambda prompt: f"runnable {prompt}"), "runnable x", None),
    ],
)
def test_what_users_have_becomes_a_summarizer_in_both_colors(value: Any, text: str, window: int | None) -> None:
    import anyio

    summarizer = as_summarizer(value)
    assert isinstance(summarizer, Summarizer)
    assert summarizer.window == window

    async def ask(ports: Any) -> str:
        return to_answer(await ports.call(summarizer.complete, "x")).text

    async def ask_async() -> str:
        return await ask(AsyncPorts())

    assert run(ask(SyncPorts())) == text
    assert anyio.run(ask_async) == text


def test_a_summarizer_is_recognized_once() -> None:
    """What is known of a model (fields that it refused) stays with it."""
    made = as_summarizer(Rich())
    assert as_summarizer(made) is made


@pytest.mark.parametrize("value", [42, "gpt-5", object(), Plain, None, {"model": "x"}])
def test_anything_else_is_refused_with_what_is_accepted(value: Any) -> None:
    with pytest.raises(PolicyError, match=r"summarizer is .*callable from prompt to text.*complete.*invoke"):
        as_summarizer(value)


def test_answers_are_read_from_text_messages_and_nothing() -> None:
    assert to_answer("words") == Answer("words")
    assert to_answer(None) == Answer("")
    answer = Answer("a", "stop")
    assert to_answer(answer) is answer
    assert to_answer(Model().invoke("x")) == Answer("model x", "stop", False, 12, 3)
    called = SimpleNamespace(content="", response_metadata={"stop_reason": "tool_use"}, tool_calls=[{"name": "f"}])
    assert to_answer(called) == Answer("", "tool_use", True)
    assert to_answer(SimpleNamespace(content=None)) == Answer("")
    with pytest.raises(PolicyError, match="returned dict, not text"):
        to_answer({"text": "x"})


def test_a_real_langchain_model_answers() -> None:
    fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    model = fakes.FakeListChatModel(responses=["a fine summary"])
    assert to_answer(as_summarizer(model).complete("x")).text == "a fine summary"


# ---- loops and copies ----

WORDS = ("parser", "lexer", "server", "client", "cache", "token", "window", "limit", "test", "build", "deploy", "error")


def prose(seed: int, words: int) -> str:
    chance = random.Random(seed)
    said = [
        f"{chance.choice(WORDS)}_{chance.randrange(99)}" if chance.random() < 0.2 else chance.choice(WORDS)
        for _ in range(words)
    ]
    return ". ".join(" ".join(said[n : n + 11]).capitalize() for n in range(0, words, 11)) + "."


@settings(max_examples=examples(40))
@given(
    unit=st.text("abc <>/[]-.\n日本語", min_size=3, max_size=60).filter(lambda text: len(set(text.split())) > 2),
    before=st.integers(0, 12),
)
def test_an_answer_that_goes_round_in_circles_is_rejected(unit: str, before: int) -> None:
    loop = prose(1, before) + "\n" + (unit + "\n") * (6_000 // len(unit))
    assert judged("many words " * 400) is None
    assert str(judged(loop, input_tokens=50_000)).startswith("it repeats itself")


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 10**6), start=st.integers(0, 4_000), length=st.integers(700, 4_000))
def test_an_answer_that_copies_its_input_is_rejected_and_one_that_quotes_it_is_not(
    seed: int, start: int, length: int
) -> None:
    source = prose(seed, 1_600)
    copy = source[start : start + length]
    tokens = count(source)
    assert rejection(Answer(copy), input_tokens=tokens, count=count, source=source) == (
        "it is a copy of what was to be summed up"
    )
    assert rejection(Answer("## Summary\n" + copy), input_tokens=tokens, count=count, source=source) is not None
    lines = [source[n : n + 120] for n in range(0, len(source) - 200, 400)]
    quoting = "\n".join(f"- {prose(seed + n + 1, 14)} ({line!r})" for n, line in enumerate(lines))
    assert rejection(Answer(quoting), input_tokens=10**6, count=count, source=source) is None


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 10**6), words=st.integers(20, 900))
def test_prose_lists_and_tables_are_no_loops(seed: int, words: int) -> None:
    text = "Done: " + prose(seed, words)  # or chance might begin with words of an error
    table = "\n".join(f"| src/module_{n}.py | {'passes' if n % 2 else 'fails'} | {n * 7} |" for n in range(words // 4))
    for said in (text, table, "\n".join(f"- {line}" for line in text.split(". "))):
        assert judged(said, input_tokens=10**6) is None


def test_what_a_small_model_answered_once_is_rejected() -> None:
    """Of a real run: it was shorter than its input, ended by itself, and no one could read a thing out of it."""
    said = "Merge the data into one:\n\n```\n" + "<pre><code>\n" * 120
    assert str(judged(said)).startswith("it repeats itself")


def test_a_short_answer_of_one_line_again_and_again_is_rejected() -> None:
    """What a real small model answered: words of its request, and then a line without an end."""
    looped = "Merge the data below, of consecutive parts of one conversation.\n\n```\n<pre>\n" + "#\n" * 37
    assert str(judged(looped)).startswith("it repeats itself: '#', 37 times")
    assert judged("## Done\n" + "".join(f"- src/file_{n}.py is read\n" for n in range(40))) is None
