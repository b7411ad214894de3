"""What must be repeated exactly is recognized by its shape, in any language around it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextfold import identifiers
from real_files import files

RECOGNISED = [
    ("url", "https://example.org/a/b?page=2&sort=name"),
    ("url", "s3://bucket/key.parquet"),
    ("url", "postgresql://db.internal:5432/orders"),
    ("email", "jane.doe+test@mail.example.org"),
    ("date", "2026-11-20"),
    ("date", "2026-11-20T10:11:12Z"),
    ("date", "09:45"),
    ("date", "2026年11月20日"),
    ("date", "3月5日"),
    ("date", "２０２６年３月１５日"),
    ("date", "二〇二六年三月十五日"),
    ("number", "９０００"),
    ("number", "３７．５％"),
    ("number", "１，２３４，５６７元"),
    ("name", "ＯＲＤ－２０２６－００４２"),
    ("name", "Ｅ１００１"),
    ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
    ("path", "/etc/hosts"),
    ("path", "/compact"),
    ("path", "~/projects/notes"),
    ("path", "../tests/conftest.py"),
    ("path", "src/app/views.py"),
    ("path", "langchain-ai/langgraph#123"),
    ("path", "C:\\Users\\jane\\report.docx"),
    ("path", "C:\\用户\\文档\\报告.docx"),
    ("path", "src/组件/登录页.tsx"),
    ("path", "/データ/設定.yaml"),
    ("name", "views.py"),
    ("name", ".gitignore"),
    ("name", "max_retry_count"),
    ("name", "MAX_RETRIES"),
    ("name", "parseHeader"),
    ("name", "HTTPServer"),
    ("name", "TimeoutError"),
    ("name", "std::vector"),
    ("name", "models.User.objects"),
    ("name", "state-of-the-art"),
    ("name", "ORD-20391"),
    ("name", "#4512"),
    ("name", "@decorator"),
    ("name", "$HOME"),
    ("name", "9f86d081884c"),
    ("name", "v1.2.3"),
    ("name", "10.0.12.7"),
    ("name", "138-1234-5678"),
    ("name", "state.json"),
    ("name", "db.sql-2026-01-15"),
    ("name", "report.final-2-draft.pdf"),
    ("name", "123-add-login-button"),
    ("name", "1234-fixlogin"),
    ("name", ".bashrc"),
    ("name", ".eslintrc"),
    ("name", ".prettierignore"),
    ("name", "job.run-20260101-abc123"),
    ("member", "session.rollback"),
    ("member", "session.get"),
    ("member", ".clone"),
    ("number", "7-character"),
    ("number", "65536"),
    ("number", "3.14"),
    ("number", "40%"),
    ("number", "250ms"),
    ("number", "$19.99"),
    ("number", "€1,250"),
    ("number", "1,234,567"),
    ("number", "500万"),
    ("flag", "--dry-run"),
    ("flag", "-name"),
    ("title", "npm run build -- --watch"),
    ("person", "Anna Kowalska"),
    ("person", "José"),
    ("person", "Hooker Valley"),
    ("address", "52:54:00:ab:cd:ef"),
    ("address", "::ffff:10.0.12.7"),
    ("address", "fe80::1ff:fe23:4567:890a"),
    ("address", "2001:db8::/32"),
    ("address", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
    ("address", "::1"),
    ("name", "Straße_12"),
    ("name", "größeMax"),
    ("name", "données.csv"),
    ("name", "отчёт_2024.xlsx"),
    ("path", "src/übung/aufgabe_3.py"),
    ("path", "/home/jürgen/.bashrc"),
    ("path", "C:\\Users\\José\\informe.docx"),
    ("email", "jürgen@müller.example"),
    ("url", "https://www.example.cn/新闻/京东外卖日订单破千万-ar-AA1DTNeP"),
    ("url", "https://müller.example/straße?größe=3"),
]

WRAPPERS = {"title": "run `{}` now"}


@pytest.mark.parametrize(("kind", "text"), RECOGNISED, ids=[text for _, text in RECOGNISED])
def test_an_identifier_is_found_whole_in_a_sentence(kind: str, text: str) -> None:
    sentence = WRAPPERS.get(kind, "then use {} again").format(text)
    found = {(identifier.text, identifier.kind) for identifier in identifiers.find(sentence)}
    assert (text, kind) in found


@pytest.mark.parametrize(
    ("kind", "text"), [pair for pair in RECOGNISED if pair[0] not in ("person", "title") and pair[1].isascii()]
)
def test_an_identifier_may_touch_chinese_or_japanese_text(kind: str, text: str) -> None:
    for sentence in (f"请打开{text}，然后继续", f"「{text}」を確認して", f"请打开{text}看看"):
        assert text in identifiers.names(sentence)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("端口改用９０００，订单号ＯＲＤ－２０２６－００４２。", ("９０００", "ＯＲＤ－２０２６－００４２")),
        ("エラーコードはＥ１００１でした。", ("Ｅ１００１",)),
        ("ＡＰＩ と ｈｅｌｌｏ、４０４", ()),
        ("结果写入 报告/模块_7.md，耗时", ("报告/模块_7.md", "模块_7.md")),
        ("前端src/组件/登录页.tsx第42行", ("src/组件/登录页.tsx",)),
        ("設定は設定/本番.yamlを参照", ("設定/本番.yaml",)),
        ("打开 报告.docx 看看", ("报告.docx",)),
        ("보고서는 보고서/이월.docx 입니다", ("보고서/이월.docx",)),
        ("是/否，见 README.md", ("README.md",)),
        ("src/app.py文件里的说明", ("src/app.py", "app.py")),
    ],
)
def test_names_in_the_signs_of_chinese_and_japanese_are_names(text: str, names: tuple[str, ...]) -> None:
    """Full-width digits and letters were none, and of a path in Chinese only its ending was one."""
    found = identifiers.names(text)
    assert set(names) <= set(found)
    assert names or not found
    assert not any("/" in name for name in set(found) - set(names))


@pytest.mark.parametrize("title", ["《红楼梦》", "「銀河鉄道の夜」", "『雪国』", "“blue harvest”"])
def test_titles_in_quotation_marks_are_found_without_the_marks(title: str) -> None:
    assert identifiers.names(f"看过{title}吗") == (title[1:-1],)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lines are separated by ` / ` alone", ()),
        ("rename `a` to `b` and `load_all` to `d`", ("load_all",)),
        ("the `a` and `b c d` of `é`", ("b c d",)),
        ("`--- / ---` and 《\u3000 》 mean nothing", ()),
        ("it is in `src/app/`", ("src/app/",)),
    ],
)
def test_a_quotation_is_what_stands_in_it_and_says_something(text: str, names: tuple[str, ...]) -> None:
    """A blank between two slashes was a name, and every pass of that conversation ended in an IndexError."""
    found = identifiers.names(text)
    assert set(names) <= set(found)
    assert [name for name in found if "`" in name or name.isspace() or name.strip() in ("to", "and", "of")] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a plain sentence, with nothing in it that would have to be exact.",
        "Yes. No! Why? Because of that and/or this, e.g. read/write access.",
        "没有什么特别的内容，只是一句话。",
        "ÖFFNEN? größer übt. Où ça? Где это лежит.",
        "12 + 7 = 19, and 404 more",
        "A" * 400,
    ],
)
def test_plain_words_are_no_identifiers(text: str) -> None:
    assert identifiers.names(text) == ()


@pytest.mark.parametrize(
    ("text", "ending"),
    [("see src/app/views.py.", "src/app/views.py"), ("is it v1.2.3?", "v1.2.3"), ("https://example.org/a.", "org/a")],
)
def test_the_signs_of_the_sentence_do_not_belong_to_it(text: str, ending: str) -> None:
    assert identifiers.names(text)[0].endswith(ending)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("src/app/views.py", "views.py"),
        ("https://example.org/get_user/list?sort_by=x", "get_user"),
        ("https://example.org/get_user/list?sort_by=x", "sort_by"),
        ("models.UserProfile.objects", "UserProfile"),
        ("self.max_retries", "max_retries"),
        ("billing::parse_invoice", "parse_invoice"),
    ],
)
def test_a_compound_brings_along_what_it_may_be_called_by(text: str, part: str) -> None:
    assert part in identifiers.names(f"in {text} it is")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("src/app/views.py-12-    return max_age", ("src/app/views.py", "views.py", "max_age")),
        ("src/app/views.py-12-def main():", ("src/app/views.py", "views.py")),
        ("views.py-7-max_age = 3600", ("views.py", "max_age", "3600")),
        ("README.md-32-", ("README.md",)),
        ("C:\\repo\\views.py-7-max_age", ("C:\\repo\\views.py", "views.py", "max_age")),
    ],
)
def test_a_file_beside_the_number_of_a_line_is_named_by_itself(line: str, found: tuple[str, ...]) -> None:
    assert identifiers.names(line) == found
    for one in identifiers.find(line):
        assert line[one.start : one.end] == one.text


def test_a_path_can_be_called_by_its_endings() -> None:
    assert identifiers.endings("/srv/app/views.py") == ("srv/app/views.py", "app/views.py", "views.py")
    assert identifiers.endings("max_retries") == ()


def _holds(text: str) -> None:
    for found in identifiers.find(text):
        assert text[found.start : found.end] == found.text
        assert len(found.text) + (2 if found.kind in ("title", "person") else 0) >= identifiers.SHORTEST
        assert len(found.text) <= identifiers.LONGEST
        assert all(part in found.text and part != found.text for part in found.parts)
        for called in (found.text, *found.parts, *identifiers.endings(found.text)):
            assert not called.isspace()
            assert called
    assert len(set(identifiers.names(text))) == len(identifiers.names(text))


@given(st.text(max_size=300))
def test_every_identifier_stands_where_it_says(text: str) -> None:
    _holds(text)


@given(st.text(alphabet="aB3f_-./:@#$%&=?~+\\`「」《》\u3000 \n,ßÄя京", max_size=120))
def test_every_identifier_stands_where_it_says_in_dense_text(text: str) -> None:
    _holds(text)


def test_every_identifier_of_real_logs_stands_where_it_says(transcripts: Path) -> None:
    for file in files(transcripts, "*/*.json*")[::7]:
        for line in file.read_text(encoding="utf-8").splitlines()[:40]:
            try:
                _holds(json.dumps(json.loads(line), ensure_ascii=False)[:20_000])
            except ValueError:
                continue


@given(st.from_regex(r"[A-Za-z_]\w{0,9}=(\d{1,9}|[A-Za-z_]\w{0,9})", fullmatch=True))
def test_what_is_assigned_is_read_as_any_other_shape(text: str) -> None:
    assert identifiers.in_chunk.__wrapped__(text) == identifiers._by_shape(text)
