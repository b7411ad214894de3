"""Write a long conversation without tools: a curator and an assistant prepare an exhibition, in English or Chinese.

    python examples/make_dialogue.py build/dialogue.json [en|zh]

The file is one OpenAI chat request of some 105,000 tokens. For each loan of the exhibition the two settle what it is
insured for, in which crate it travels, where it hangs and who answers for it, and the curator sets rules that hold
from then on. Now and then the curator asks about a loan of long ago, or for a list of several: what the assistant
answers then was said once, many thousand tokens before. Every detail comes from the lists below and a seeded generator,
so every run writes the same bytes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Loan:
    """Everything that is settled about one object."""

    number: str
    what: str
    city: str
    value: int
    crate: str
    room: str
    contact: str
    lux: int
    courier: str


@dataclass(frozen=True)
class Script:
    """The words of one language. Texts are templates over a loan, ``{other}`` being one of before."""

    system: str
    opening: str
    objects: tuple[str, ...]
    cities: tuple[str, ...]
    people: tuple[str, ...]
    rules: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    asides: tuple[str, ...]
    recall: str
    recalled: str
    survey: str
    surveyed: str


ENGLISH = Script(
    system="You help a curator prepare an exhibition. Be exact with numbers, codes and names: they go into contracts.",
    opening=(
        "We prepare the exhibition 'Harbour Light' for 14 September. I will go through the loans one by one. Please "
        "hold these rules: never promise a lender more than 50 lux without asking me; all crates go through dock "
        "B-2207; the insurer's reference is POL-880314; and do not use the word masterpiece in any text."
    ),
    objects=(
        "a view of the roadstead at dusk",
        "a ship's logbook",
        "a brass sextant",
        "a pilot's chart of the shoals",
        "an oil sketch of the mole",
        "a model of a herring drifter",
        "a lighthouse lens",
        "a series of tide tables",
        "a watercolor of the customs house",
        "a harbour bell",
        "a sailmaker's bench",
        "a portrait of a harbour master",
    ),
    cities=("Bergen", "Porto", "Leith", "Riga", "Trieste", "Brest", "Gdynia", "Aarhus", "Hull", "Ostend", "Split"),
    people=("Ines Duarte", "Piet Vroom", "Marta Lisowska", "Olav Brekke", "Chiara Pozzi", "Ewan Muir", "Liga Ozola"),
    rules=(
        "One more rule from now on: {city} must never be told the value of another lender's object.",
        "From now on, only {contact} may sign for crate {crate}; do not accept anyone else.",
        "Rule for the labels: do not print inventory numbers, except {number}, where the lender insists on it.",
        "Please remember: nothing may be hung in {room} before the hygrometer there has been read twice.",
    ),
    questions=(
        "Next is {number}, {what} from {city}. They ask for an insurance value of {value} euro and wrote from "
        "{contact}. What do we have to settle before I sign?",
        "Now {number}: {what}. {city} wants it back within a week of the closing, and names {contact} as the one who "
        "answers for it. I think of {room}. What speaks against it?",
        "About {number}, {what}: the conservator in {city} allows {lux} lux and asks which crate we mean. {contact} "
        "wants an answer this week. Please think it through with me.",
    ),
    answers=(
        "For {number} I would settle four things. The value of {value} euro is in line with what {city} asked for its "
        "earlier loans, so I would accept it and put it under the insurer's reference. It travels in crate {crate}, "
        "which has the inner height that {what} needs, with {courier} as courier. For the hanging I suggest {room}, "
        "because the light there can be held at {lux} lux without closing the blinds for the whole wing. And the "
        "answer goes to {contact}, today if you agree.",
        "Let me take it in order. First the place: {room} is dry enough, and its south wall carries the weight. Then "
        "the light: {lux} lux, as {city} wants it; I would not offer more. Then the transport: crate {crate} with "
        "{courier}, arriving two days before the hanging so that {what} can settle. The value of {value} euro is high "
        "for its kind, but {city} has a valuation from last year. Decision: we accept {number} on these terms "
        "and tell {contact}.",
    ),
    asides=(
        "Before we go on: the carpenters asked again how long the plinths must be. I told them to wait for your "
        "drawing, and that the veneer is not to be cut before the humidity in the workshop has come down. "
        "Was that right?",
        "The press office wants a paragraph for the spring programme. Something quiet about the sea as a place of "
        "work, not of longing, and about the people who mended nets in winter while the boats lay on the slip.",
        "My colleague thinks that the second wing feels crowded. I am not sure: visitors like to turn a corner and "
        "find something small there, a letter, a tool, a list of provisions in a careful hand.",
    ),
    recall=(
        "While I have you: what did we say about {number}? I need the crate, the value, the room, the light and who "
        "answers for it, exactly, for the contract."
    ),
    recalled=(
        "For {number}, {what} from {city}: crate {crate}, insured for {value} euro, to hang in {room} at {lux} lux, "
        "with {courier} as courier; {contact} answers for it."
    ),
    survey="Please list the loans {numbers} with their crates and values; the forwarder needs it within the hour.",
    surveyed="{number}: crate {crate}, {value} euro, {city}, {contact}",
)

CHINESE = Script(
    system="你协助策展人筹备一场展览。数字、编号和姓名必须准确无误，因为它们会写进合同。",
    opening=(
        "我们要为九月十四日开幕的展览《港湾之光》做准备，我会逐件讨论借展品。请始终遵守以下规则：未经我同意，绝不能向"
        "出借方承诺超过50勒克斯的照度；所有运输箱必须经由装卸口 DK-2207 进馆；保险单号是 POL-880314；"
        "任何文案都不要使用“杰作”一词。"
    ),
    objects=(
        "一幅黄昏锚地的油画",
        "一册航海日志",
        "一架黄铜六分仪",
        "一张浅滩领航图",
        "一幅防波堤速写",
        "一艘渔船模型",
        "一组灯塔透镜",
        "一套潮汐表",
        "一幅海关旧楼水彩",
        "一口港钟",
        "一张制帆工作台",
        "一幅港务长肖像",
    ),
    cities=("泉州", "宁波", "烟台", "大连", "厦门", "北海", "湛江", "威海", "温州", "珠海", "连云港"),
    people=("林若溪", "陈致远", "周明薇", "黄启山", "许安然", "郭子谦", "沈书宁"),
    rules=(
        "从现在起再加一条规则：绝不能把其他出借方展品的估价告诉{city}方面。",
        "从现在起，{crate}号运输箱只能由{contact}签收，其他人一律不接受。",
        "展签的规则：不要印藏品编号，只有{number}例外，因为出借方坚持要印。",
        "请记住：在{room}的湿度计连续读数两次之前，不得在那里布置任何展品。",
    ),
    questions=(
        "下一件是{number}，{city}借来的{what}。对方要求投保{value}元，联系人是{contact}。我签字之前需要先确定哪些事情？",
        "现在讨论{number}：{what}。{city}方面希望闭展后一周内归还，负责人是{contact}。我打算放在{room}，你觉得有什么不妥？",
        "关于{number}，也就是{what}：{city}的文物修复师只允许{lux}勒克斯，还问我们准备用哪个运输箱。{contact}希望本周"
        "得到答复，请和我一起想清楚。",
    ),
    answers=(
        "关于{number}，我建议先确定四件事。第一，{value}元的保额与{city}以往借展的要求相符，可以接受，并写在同一张保险"
        "单下。第二，用{crate}号运输箱，它的内高正好适合{what}，押运由{courier}负责。第三，建议放在{room}，那里的灯光"
        "可以稳定在{lux}勒克斯，不必拉上整个侧厅的遮光帘。第四，如果您同意，今天就答复{contact}。",
        "我按顺序来说。先说位置：{room}足够干燥，南墙的承重也没有问题。再说光线：按{city}的要求控制在{lux}勒克斯，不宜"
        "再高。然后是运输：用{crate}号箱，由{courier}押运，提前两天到达，让{what}适应环境。{value}元的估价偏高，不过{c"
        "ity}去年做过评估。结论：按这些条件接受{number}，并通知{contact}。",
    ),
    asides=(
        "继续之前说一件事：木工又来问展台要做多长。我让他们等您的图纸，并且说在车间湿度降下来之前不要裁切贴面板，这样处理对吗？",
        "宣传部门需要一段春季节目单的文字。语气安静一些，写海作为劳动的地方，而不是思念的地方，写冬天船上岸之后修补渔网的人们。",
        "同事觉得第二侧厅有些拥挤。我倒不确定：观众喜欢转过一个角落，发现一件很小的东西，一封信，一件工具，一张字迹工整的补给清单。",
    ),
    recall="顺便问一下，{number}我们当时是怎么定的？合同里要写清楚运输箱、保额、展厅、照度和负责人，请准确告诉我。",
    recalled="{number}是{city}借来的{what}：运输箱{crate}，保额{value}元，放在{room}，照度{lux}勒克斯，由{courier}押运，负责人{contact}。",
    survey="请把{numbers}这几件的运输箱和保额列出来，货运代理一小时内就要。",
    surveyed="{number}：运输箱{crate}，保额{value}元，{city}，{contact}",
)
SCRIPTS = {"en": ENGLISH, "zh": CHINESE}
LOANS = 230


def make_dialogue(language: str = "en", seed: int = 11, loans: int = LOANS) -> dict[str, Any]:
    """A request with the whole conversation. ``loans`` decides how long it is: some 450 tokens each."""
    script, chance = SCRIPTS[language], random.Random(seed)
    messages = [{"role": "system", "content": script.system}, {"role": "user", "content": script.opening}]
    settled: list[Loan] = []
    for number in range(loans):
        loan = make_loan(script, chance)
        settled.append(loan)
        _talk(messages, script, chance, loan)
        if number % 3 == 2:
            _aside(messages, script, chance, loan)
        if number % 2 and number > 8:
            _recall(messages, script, chance.choice(settled[:-4]))
        if number % 12 == 11:
            _survey(messages, script, chance.sample(settled[:-4], 5))
    return {"model": "gpt-5", "messages": messages}


def make_loan(script: Script, chance: random.Random) -> Loan:
    """A loan that nobody has heard of before."""
    person = chance.choice(script.people)
    return Loan(
        number=f"LN-{chance.randrange(10_000, 99_999)}",
        what=chance.choice(script.objects),
        city=chance.choice(script.cities),
        value=chance.randrange(4_000, 900_000, 50),
        crate=f"CR-{chance.randrange(1_000, 9_999)}",
        room=f"R{chance.randrange(1_000, 9_999)}",
        contact=f"{person} (desk{chance.randrange(100, 999)}@lenders.example)",
        lux=chance.randrange(30, 51, 5),
        courier=chance.choice(script.people),
    )


def _talk(messages: list[dict[str, Any]], script: Script, chance: random.Random, loan: Loan) -> None:
    _add(messages, "user", chance.choice(script.questions).format(**vars(loan)))
    _add(messages, "assistant", "\n\n".join(text.format(**vars(loan)) for text in _shuffled(script.answers, chance)))


def _aside(messages: list[dict[str, Any]], script: Script, chance: random.Random, loan: Loan) -> None:
    rule = chance.choice(script.rules).format(**vars(loan))
    _add(messages, "user", f"{chance.choice(script.asides)}\n\n{rule}")
    _add(messages, "assistant", "\n\n".join(_shuffled(script.asides, chance)))


def _recall(messages: list[dict[str, Any]], script: Script, loan: Loan) -> None:
    _add(messages, "user", script.recall.format(**vars(loan)))
    _add(messages, "assistant", script.recalled.format(**vars(loan)))


def _survey(messages: list[dict[str, Any]], script: Script, loans: Sequence[Loan]) -> None:
    _add(messages, "user", script.survey.format(numbers=", ".join(loan.number for loan in loans)))
    _add(messages, "assistant", "\n".join(script.surveyed.format(**vars(loan)) for loan in loans))


def _shuffled(texts: Sequence[str], chance: random.Random) -> list[str]:
    return chance.sample(texts, len(texts))


def _add(messages: list[dict[str, Any]], role: str, text: str) -> None:
    messages.append({"role": role, "content": text})


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "build/dialogue.json")
    request = make_dialogue(sys.argv[2] if len(sys.argv) > 2 else "en")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(request, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {len(request['messages'])} messages")


if __name__ == "__main__":
    main()
