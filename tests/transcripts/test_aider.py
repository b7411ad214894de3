"""Aider's chat histories: whose each line is, and what no model was sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contextfold.errors import InputError
from transcripts.files import roles, several

AIDER = """\
# aider chat started at 2031-01-01 09:00:00

> Aider v0.73.0  

# aider chat started at 2031-01-01 10:00:00

> Added src/app.py to the chat.  

#### Rename `load` to `read`.  
####   
#### Never touch the tests.  

Here is the change:

# Renaming

> load is a bad name

#### `load`

src/app.py

> Tokens: 2.1k sent, 90 received.  
> Applied edit to src/app.py  

#### /run pytest -q  
> E   NameError: load  
> 1 failed  
> Add 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]: y  

#### !ls  
> secret.txt  
> Add 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]: n  

#### Mend it.  

Done.

# aider chat started at 2031-01-02 10:00:00

#### Hello  

Hi.
"""


@pytest.mark.parametrize("written", [str, lambda text: text.replace("\n", "\r\n"), lambda text: f"notes\n{text}"])
def test_each_chat_of_aiders_history_is_a_conversation_of_what_was_said(written: Callable[[str], str]) -> None:
    """Such a file was refused, though Aider itself takes a chat up again from it."""
    first, second = several(written(AIDER).encode())

    ran = "I ran this command:\n\n/run pytest -q\n\nAnd got this output:\n\nE   NameError: load\n1 failed"
    assert [(message["role"], message["content"].replace("\r", "")) for message in first.messages] == [
        ("user", "Rename `load` to `read`.\n\nNever touch the tests."),
        ("assistant", "Here is the change:\n\n# Renaming\n\n> load is a bad name\n\n#### `load`\n\nsrc/app.py"),
        ("user", f"{ran}\nAdd 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]: y"),
        ("user", "Mend it."),
        ("assistant", "Done."),
    ]
    assert (first.format, first.kind, roles(second.messages)) == ("openai-chat", "aider", ["user", "assistant"])


def test_a_history_of_aiders_whose_lines_an_editor_trimmed_is_read_by_its_marks() -> None:
    trimmed = "\n".join(line.rstrip() for line in AIDER.split("\n"))

    first, _ = several(trimmed.encode())
    said = "\n".join(message["content"] for message in first.messages)

    assert "Never touch the tests." in said
    assert "Tokens: 2.1k sent" not in said


def test_a_history_in_which_nothing_was_said_to_a_model_is_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match="talk: no model was asked anything in this chat history of Aider's: give"):
        several(b"# aider chat started at 2031-01-01 09:00:00\n\n> Aider v0.73.0  \n\n#### /run ls  \n")
