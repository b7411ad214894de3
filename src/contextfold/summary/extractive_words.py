"""The few words that the extractive summary adds to what it quotes, in each language that it speaks.

What belongs here: headings and short labels. What does not: recognizing anything (``extractive_cues``), and the frame
around a summary in a view (``message``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """Headings of the sections in their order, then labels. ``scope`` takes the numbers of messages."""

    goal: str
    constraints: str
    superseded: str
    decisions: str
    done: str
    errors: str
    open: str
    scope: str
    lines: str


ENGLISH = Words(
    goal="Goal and requests, in the user's words",
    constraints="Constraints the user stated",
    superseded="Superseded: later words of the user that replaced earlier ones",
    decisions="Decisions and findings",
    done="Done",
    errors="Errors met",
    open="In progress or open when this part ended",
    scope="{total} messages: {user} from the user, {assistant} from the assistant, {tool} tool results",
    lines="{n} lines",
)

_WORDS = {
    "en": ENGLISH,
    "de": Words(
        goal="Ziel und Wünsche in den Worten des Nutzers",
        constraints="Vorgaben des Nutzers",
        superseded="Überholt: spätere Worte des Nutzers, die frühere ersetzen",
        decisions="Entscheidungen und Erkenntnisse",
        done="Erledigt",
        errors="Aufgetretene Fehler",
        open="In Arbeit oder offen am Ende dieses Abschnitts",
        scope="{total} Nachrichten: {user} vom Nutzer, {assistant} vom Assistenten, {tool} Werkzeugergebnisse",
        lines="{n} Zeilen",
    ),
    "zh": Words(
        goal="目标与请求（用户原话）",
        constraints="用户提出的约束",
        superseded="已被取代：用户后来的说法替换了先前的",
        decisions="决定与发现",
        done="已完成",
        errors="遇到的错误",
        open="本段结束时进行中或未决的事项",
        scope="共 {total} 条消息：用户 {user} 条，助手 {assistant} 条，工具结果 {tool} 条",
        lines="{n} 行",
    ),
    "ja": Words(
        goal="目的と依頼（ユーザーの言葉）",
        constraints="ユーザーが示した制約",
        superseded="置き換え済み：後の発言が以前の発言に優先",
        decisions="決定と判明したこと",
        done="完了",
        errors="発生したエラー",
        open="この区間の終わりで進行中または未解決",
        scope="メッセージ {total} 件：ユーザー {user}、アシスタント {assistant}、ツール結果 {tool}",
        lines="{n} 行",
    ),
    "ko": Words(
        goal="목표와 요청 (사용자의 말)",
        constraints="사용자가 밝힌 제약",
        superseded="대체됨: 사용자의 나중 말이 이전 말을 바꿈",
        decisions="결정과 발견",
        done="완료",
        errors="발생한 오류",
        open="이 구간이 끝날 때 진행 중이거나 미해결",
        scope="메시지 {total}개: 사용자 {user}, 어시스턴트 {assistant}, 도구 결과 {tool}",
        lines="{n}줄",
    ),
    "fr": Words(
        goal="Objectif et demandes, dans les mots de l'utilisateur",
        constraints="Contraintes posées par l'utilisateur",
        superseded="Remplacé : des propos ultérieurs de l'utilisateur annulent les précédents",
        decisions="Décisions et constats",
        done="Fait",
        errors="Erreurs rencontrées",
        open="En cours ou en suspens à la fin de cette partie",
        scope="{total} messages : {user} de l'utilisateur, {assistant} de l'assistant, {tool} résultats d'outils",
        lines="{n} lignes",
    ),
    "es": Words(
        goal="Objetivo y peticiones, en palabras del usuario",
        constraints="Restricciones indicadas por el usuario",
        superseded="Reemplazado: palabras posteriores del usuario sustituyen a las anteriores",
        decisions="Decisiones y hallazgos",
        done="Hecho",
        errors="Errores encontrados",
        open="En curso o pendiente al final de esta parte",
        scope="{total} mensajes: {user} del usuario, {assistant} del asistente, {tool} resultados de herramientas",
        lines="{n} líneas",
    ),
    "pt": Words(
        goal="Objetivo e pedidos, nas palavras do usuário",
        constraints="Restrições indicadas pelo usuário",
        superseded="Substituído: palavras posteriores do usuário valem no lugar das anteriores",
        decisions="Decisões e descobertas",
        done="Feito",
        errors="Erros encontrados",
        open="Em andamento ou em aberto ao fim desta parte",
        scope="{total} mensagens: {user} do usuário, {assistant} do assistente, {tool} resultados de ferramentas",
        lines="{n} linhas",
    ),
    "ru": Words(
        goal="Цель и просьбы словами пользователя",
        constraints="Ограничения, названные пользователем",
        superseded="Отменено: более поздние слова пользователя заменяют прежние",
        decisions="Решения и выводы",
        done="Сделано",
        errors="Встреченные ошибки",
        open="В работе или не решено к концу этой части",
        scope="Сообщений: {total}; от пользователя {user}, от ассистента {assistant}, результатов инструментов {tool}",
        lines="строк: {n}",
    ),
}


CONSTRAINTS = frozenset(words.constraints for words in _WORDS.values())
"""The heading above the user's rules in each language."""


def words(language: str) -> Words:
    """The words of a language given by its code (``pt-BR`` counts as ``pt``); English where there are none."""
    return _WORDS.get(language, _WORDS.get(language.partition("-")[0].lower(), ENGLISH))
