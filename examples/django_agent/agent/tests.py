"""The project's tests: ``python manage.py test``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from django.db import connections, transaction
from django.test import Client, TestCase, TransactionTestCase, override_settings
from django.utils import timezone

from agent.conversations import areply, asession_for, compactor, get_optimization_config, reply, session_for
from agent.models import AgentMessage, AgentSession, DialogStyle, SessionSummary, SummaryMessage
from agent.store import DjangoStore
from contextfold import Compactor
from contextfold.errors import StoreUnavailable
from contextfold.testing.summary_store import SummaryStoreTests

SMALL = {"window": 16_000, "summarizer": None, "send": "agent.tests.answer"}
SENT: list[list[Any]] = []


def answer(view: list[Any]) -> dict[str, Any]:
    """A model that answers at once."""
    SENT.append(view)
    return {"role": "assistant", "content": f"answer {len(SENT)}"}


class Refusal(Exception):
    """What a provider's SDK raises for a prompt that is too long."""

    status_code = 400
    body = {"error": {"code": "context_length_exceeded", "message": "prompt is too long: 9000 tokens > 4000 maximum"}}


def refusing(view: list[Any]) -> dict[str, Any]:
    """A model that takes less than is thought."""
    SENT.append(view)
    if sum(len(json.dumps(message)) for message in view) > 16_000:
        raise Refusal(Refusal.body["error"]["message"])
    return {"role": "assistant", "content": "an answer"}


def said(count: int, words: int = 200) -> list[dict[str, str]]:
    return [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: " + "word " * words} for n in range(count)
    ]


class Fresh:
    """Each test has a compactor of its own settings, and nothing was sent yet."""

    def setUp(self) -> None:
        SENT.clear()
        compactor.cache_clear()
        self.user = User.objects.create_user("anna")


@override_settings(AGENT=SMALL)
class ConversationTests(Fresh, TestCase):
    """``TestCase`` runs each test inside of a transaction: all of this happens in one, on Django's connection."""

    def test_a_conversation_lives_in_the_projects_models(self) -> None:
        self.assertEqual(reply(self.user, "thread", "Hello"), "answer 1")
        session = AgentSession.objects.get(user=self.user)
        self.assertEqual((session.title, session.message_count, session.thread_id), ("Hello", 3, "thread"))
        self.assertEqual([one.role for one in session.messages.all()], ["system", "user", "assistant"])
        self.assertEqual(session.messages.get(sequence=1).wire, {"role": "user", "content": "Hello"})

    def test_a_long_one_is_summarized_and_the_row_says_so(self) -> None:
        session = session_for(self.user, "thread")
        session.append(said(80))
        reply(self.user, "thread", "And now?")
        row = AgentSession.objects.get()
        self.assertIsInstance(row.summary_created_at, datetime)
        self.assertIsNotNone(row.summary_created_at.tzinfo)
        self.assertEqual(row.summary_created_at, row.summary.created_at)
        self.assertEqual(row.summary_until_index, row.summary.covers)
        self.assertTrue(any(row.summary_text in str(message["content"]) for message in SENT[-1]))
        self.assertFalse(row.is_summarizing)
        self.assertLess(len(SENT[-1]), 80)
        self.assertEqual(AgentMessage.objects.count(), 82)  # every message is still there
        covered = SummaryMessage.objects.filter(summary=row.summary).count()
        self.assertEqual(covered, session.ledger().counts()["summarized"])

    def test_undo_and_search_work_on_the_projects_tables(self) -> None:
        session = session_for(self.user, "thread")
        session.append([*said(80), {"role": "user", "content": "the ticket is BILL-4711"}])
        before = session.history()
        self.assertLess(len(session.view()), 81)
        session.undo()
        self.assertEqual(list(session.view()), before)
        self.assertEqual([hit.index for hit in session.search("BILL-4711")], [80])

    def test_what_a_refusal_made_smaller_is_in_the_tables(self) -> None:
        with override_settings(AGENT={**SMALL, "window": 64_000, "send": "agent.tests.refusing"}):
            compactor.cache_clear()
            session_for(self.user, "thread").append(said(60))
            self.assertEqual(reply(self.user, "thread", "And now?"), "an answer")
        self.assertGreater(len(SENT), 1)
        self.assertEqual(SessionSummary.objects.latest("id").trigger, "overflow_retry")

    def test_options_of_a_user_come_from_the_orm_and_are_read_for_each_call(self) -> None:
        session = session_for(self.user, "thread")
        session.append(said(60, 100))
        self.assertIsNone(session.due())
        style = DialogStyle.objects.create(user=self.user, upper_threshold=4_000, lower_threshold=2_000)
        self.assertEqual(session.due(), "tokens:4000")
        style.enable_context_optimization = False
        style.save()
        self.assertIsNone(session.due())
        self.assertEqual(get_optimization_config(self.user)["upper_threshold"], 4_000)

    def test_users_never_see_each_other(self) -> None:
        reply(self.user, "thread", "for me alone")
        other = User.objects.create_user("ben")
        self.assertEqual(session_for(other, "thread").history(), [])

    def test_a_user_is_deleted_with_all_that_was_said(self) -> None:
        session_for(self.user, "thread").append(said(80))
        session_for(self.user, "thread").view()
        self.user.delete()
        for model in (AgentSession, AgentMessage, SessionSummary, SummaryMessage):
            self.assertEqual(model.objects.count(), 0)

    def test_the_view_answers(self) -> None:
        client = Client()
        client.force_login(self.user)
        response = client.post("/threads/one/messages", {"text": "Hello"}, content_type="application/json")
        self.assertEqual(
            response.json(),
            {
                "answer": "answer 1",
                "messages": 3,
                "summary_until_index": None,
                "summary_tokens": None,
            },
        )
        self.assertEqual(Client().post("/threads/one/messages").status_code, 302)


@override_settings(AGENT=SMALL)
class TransactionTests(Fresh, TransactionTestCase):
    """What is committed when, between connections."""

    def test_appending_is_one_transaction_with_the_callers_and_waits_for_no_lock_of_its_own(self) -> None:
        session = session_for(self.user, "thread")
        started = time.monotonic()
        with transaction.atomic():
            User.objects.create_user("ben")
            session.append(said(4))
            self.assertEqual(len(session.view()), 4)
        self.assertLess(time.monotonic() - started, 5)
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            User.objects.create_user("cleo")
            session.append(said(4))
            raise ZeroDivisionError
        self.assertEqual(session.state().message_count, 4)
        self.assertFalse(User.objects.filter(username="cleo").exists())

    def test_a_summary_inside_of_a_transaction_goes_with_it(self) -> None:
        session = session_for(self.user, "thread")
        session.append(said(80))
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            self.assertLess(len(session.view()), 80)
            raise ZeroDivisionError
        self.assertEqual(SessionSummary.objects.count(), 0)
        self.assertLess(len(session.view()), 80)
        self.assertEqual(SessionSummary.objects.count(), 1)

    def test_a_lease_inside_of_a_transaction_waits_for_no_lock_of_its_own_and_goes_with_it(self) -> None:
        store = WatchedStore(self.user)

        def slow(prompt: str) -> str:
            time.sleep(1.5)  # far longer than the lease: it has to be renewed
            return "A summary of what was said."

        made = Compactor(window=16_000, summarizer=slow)
        session = made.session("thread", store, options={"lease_seconds": 1.0})
        session.append(said(80))
        for ends_well in (False, True):
            started = time.monotonic()
            with contextlib.suppress(ZeroDivisionError), transaction.atomic():
                self.assertLess(len(session.view()), 80)
                self.assertFalse(session.state().is_summarizing)
                self.assertTrue(store.renewed and all(store.renewed), store.renewed)
                if not ends_well:
                    raise ZeroDivisionError
            self.assertLess(time.monotonic() - started, 10)
            self.assertEqual(store.seen, [True])  # by the one that holds it
            self.assertFalse(AgentSession.objects.get().is_summarizing)
            self.assertEqual(SessionSummary.objects.count(), int(ends_well))
            store.seen.clear()
            store.renewed.clear()
        again = made.session("thread", WatchedStore(self.user))
        self.assertLess(len(again.view()), 80)

    def test_a_lease_ends_where_the_clock_is_set_back(self) -> None:
        session, store = session_for(self.user, "thread"), DjangoStore(self.user)
        session.append(said(2))
        self.assertTrue(store.acquire_lease(session.thread, "dead", 60))
        self.assertFalse(store.acquire_lease(session.thread, "next", 60))
        with mock.patch("django.utils.timezone.now", return_value=timezone.now() - timedelta(hours=1)):
            self.assertFalse(session.state().is_summarizing)
            self.assertTrue(store.acquire_lease(session.thread, "next", 60))
            self.assertTrue(session.state().is_summarizing)
            self.assertFalse(store.renew_lease(session.thread, "dead", 60))

    def test_others_see_nothing_before_the_commit_and_writers_take_turns(self) -> None:
        session = session_for(self.user, "thread")
        session.append(said(2))
        seen: list[int] = []

        def elsewhere(work: Any) -> None:
            try:
                work()
            finally:
                connections.close_all()

        with transaction.atomic():
            session.append(said(2))
            other = threading.Thread(target=elsewhere, args=(lambda: seen.append(session.state().message_count),))
            other.start()
            other.join()
        self.assertEqual((seen, session.state().message_count), ([2], 4))
        writers = [threading.Thread(target=elsewhere, args=(lambda: session.append(said(2)),)) for _ in range(6)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        self.assertEqual(session.state().message_count, 16)
        self.assertEqual(sorted(AgentMessage.objects.values_list("sequence", flat=True)), list(range(16)))

    def test_async_code_shares_the_connection_of_djangos_own_async_queries(self) -> None:
        async def talk() -> int:
            await DialogStyle.objects.acreate(user=self.user, upper_threshold=4_000, lower_threshold=2_000)
            session = asession_for(self.user, "thread")
            await session.aappend(said(60, 100))
            self.assertEqual(await session.adue(), "tokens:4000")
            self.assertEqual(await areply(self.user, "thread", "And now?"), "answer 1")
            return await AgentMessage.objects.acount()

        self.assertEqual(asyncio.run(talk()), 62)
        self.assertEqual(SessionSummary.objects.count(), 1)

    def test_a_database_that_is_away_is_an_error_of_contextfold(self) -> None:
        with self.assertRaises(StoreUnavailable):
            store = DjangoStore(using="default")
            with connections["default"].execute_wrapper(_gone):
                store.load(session_for(self.user, "thread").thread)


class WatchedStore(DjangoStore):
    """Tells what came of each renewal of a lease; one that waits has no answer yet."""

    def __init__(self, user: Any) -> None:
        super().__init__(user)
        self.renewed: list[bool] = []
        self.seen: list[bool] = []

    def renew_lease(self, *arguments: Any) -> bool:
        place = len(self.renewed)
        self.renewed.append(False)
        self.renewed[place] = super().renew_lease(*arguments)
        return self.renewed[place]

    def release_lease(self, thread: Any, owner: str) -> None:
        self.seen.append(self.load(thread).is_summarizing)
        super().release_lease(thread, owner)


def _gone(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    from django.db import OperationalError

    raise OperationalError("the connection was lost")


class DjangoStoreTests(SummaryStoreTests, TransactionTestCase):
    """The promises of a store, as contextfold tests them."""

    def make_store(self) -> DjangoStore:
        return DjangoStore()

    def tearDown(self) -> None:
        connections.close_all()
