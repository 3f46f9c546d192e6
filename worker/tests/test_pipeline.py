"""The pipeline's parts: the wire, the handshake, and the head's engine with later stages in one process."""

import socket
import threading
import unittest
from dataclasses import replace
from typing import Any

import mlx.core as mx

from bushel_worker.pipeline.handshake import GroupMismatch, Identity, Joined, NotOurs, Peer, shake_hands
from bushel_worker.pipeline.link import Activity, Inbox, Link, PeerLost
from bushel_worker.pipeline.mlx_work import MlxWork
from bushel_worker.pipeline.ring import CannotConnect, Deadlines, connect
from bushel_worker.pipeline.wire import LENGTHS, Seal, Tensor, WireError, read_message, send_message
from bushel_worker.stage import Stage

from .group import free_ports
from .loopback import Loopback
from .test_engine import SAMPLINGS, prompt
from .tiny import Drive, tiny_model, tiny_service

FACTS = {"mlx": "0.32.4", "mlx-lm": "0.32.2", "plan": "p1", "model digest": "d1", "dtype": "float32", "worker": "0.1.0"}


def identity(rank: int, **changes: Any) -> Identity:
    facts = {**FACTS, **changes.pop("facts", {})}
    return Identity(**{"rank": rank, "stage": rank, "group": "g", "secret": "s", "facts": facts, **changes})


def hands(dialler: Identity, listener: Identity, expected: int | None = None) -> list[Any]:
    """What the handshake gives to both ends: a Joined or the error."""
    ends = socket.socketpair()
    results: list[Any] = [None, None]

    def shake(index: int, me: Identity, expected: int) -> None:
        try:
            results[index] = shake_hands(ends[index], me, expected, index == 0, 2)
        except Exception as error:
            results[index] = error
            ends[index].close()

    threads = [
        threading.Thread(target=shake, args=(0, dialler, listener.stage if expected is None else expected)),
        threading.Thread(target=shake, args=(1, listener, dialler.stage)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class OverTcp(unittest.TestCase):
    def setUp(self) -> None:
        door = socket.create_server(("127.0.0.1", 0))
        self.a = socket.create_connection(door.getsockname())
        self.b, _ = door.accept()
        door.close()

    def tearDown(self) -> None:
        self.a.close()
        self.b.close()


class Wire(OverTcp):
    def test_a_message_arrives_as_it_was_sent(self) -> None:
        for tensor in (None, Tensor((2, 3), "int32", mx.arange(6)), Tensor((1, 2), "bfloat16", bytes(4))):
            sending, receiving = Seal(b"k"), Seal(b"k")
            send_message(self.a, sending, {"op": "step", "rows": [1, 2]}, tensor)
            header, came = read_message(self.b, receiving)
            self.assertEqual(header, {"op": "step", "rows": [1, 2]})
            if tensor is not None:
                assert came is not None
                self.assertEqual((came.shape, came.dtype), (tensor.shape, tensor.dtype))
                self.assertEqual(bytes(came.data), bytes(memoryview(tensor.data).cast("B")))

    def test_headers_cannot_be_read_changed_or_repeated(self) -> None:
        seal = Seal(b"k")
        first = seal.close(b'{"ids":[4711]}', 0)
        self.assertNotIn(b"4711", first)
        self.assertNotEqual(first, seal.close(b'{"ids":[4711]}', 0))
        for damaged in (first[:-1] + bytes([first[-1] ^ 1]), first[:-1], first + b"x"):
            with self.assertRaises(WireError):
                Seal(b"k").open(damaged, 0)
        with self.assertRaises(WireError):
            Seal(b"k").open(first, 8)  # another body
        with self.assertRaises(WireError):
            Seal(b"other").open(first, 0)
        opening = Seal(b"k")
        self.assertEqual(opening.open(first, 0), b'{"ids":[4711]}')
        with self.assertRaises(WireError):
            opening.open(first, 0)

    def test_lengths_that_nobody_sends_are_refused(self) -> None:
        for lengths in ((1 << 30, 0), (32, 0xFFFFFFFF), (3, 0)):
            self.a.sendall(LENGTHS.pack(*lengths))
            with self.assertRaises(WireError):
                read_message(self.b, Seal(b"k"))

    def test_a_tensor_that_is_not_its_shape_is_refused(self) -> None:
        send_message(self.a, Seal(b"k"), {}, Tensor((2, 2), "float32", bytes(12)))
        with self.assertRaises(WireError):
            read_message(self.b, Seal(b"k"))

    def test_arrays_of_every_type_come_back_bit_by_bit(self) -> None:
        work = MlxWork(None, True)  # type: ignore[arg-type]
        for dtype in (mx.float32, mx.float16, mx.bfloat16):
            array = mx.random.normal((2, 3, 4)).astype(dtype)
            mx.eval(array)
            back = work.unpacked(work.packed(array))
            self.assertEqual(back.dtype, dtype)
            self.assertTrue(mx.array_equal(back, array))


class Handshake(unittest.TestCase):
    def test_ranks_of_one_mind_trust_each_other(self) -> None:
        first, second = hands(identity(0), identity(1))
        self.assertIsInstance(first, Joined)
        self.assertEqual((first.peer.rank, second.peer.rank), (1, 0))
        send_message(first.socket, first.sending, {"hello": 1})
        self.assertEqual(read_message(second.socket, second.receiving)[0], {"hello": 1})
        first.socket.close()
        second.socket.close()

    def test_another_secret_is_refused_by_both(self) -> None:
        first, second = hands(identity(0, secret="other"), identity(1))
        self.assertIsInstance(first, NotOurs)
        self.assertIsInstance(second, NotOurs)
        self.assertIn("secret", str(second))

    def test_another_group_is_refused(self) -> None:
        self.assertTrue(all(isinstance(end, NotOurs) for end in hands(identity(0, group="h"), identity(1))))

    def test_every_difference_is_named_by_both(self) -> None:
        for name in FACTS:
            for end in hands(identity(0, facts={name: "else"}), identity(1)):
                self.assertIsInstance(end, GroupMismatch)
                self.assertRegex(str(end), rf"{name} is .* on rank \d \(stage \d\) but .* on rank \d")
                self.assertIn("else", str(end))

    def test_the_wrong_stage_is_refused(self) -> None:
        dialler, listener = hands(identity(0), identity(1), expected=2)
        self.assertIsInstance(dialler, GroupMismatch)
        self.assertRegex(str(dialler), "rank 1 .* where stage 2 should be")
        listener.socket.close()

    def test_a_stranger_learns_nothing_and_ends_nothing(self) -> None:
        for greeting in (b"GET / HTTP/1.1\r\n\r\n", b"", LENGTHS.pack(5000, 0), LENGTHS.pack(2, 0) + b"[]"):
            ours, theirs = socket.socketpair()
            theirs.sendall(greeting)
            theirs.shutdown(socket.SHUT_WR)
            with self.assertRaises((NotOurs, OSError)):
                shake_hands(ours, identity(1), 0, False, 0.5)
            ours.close()
            heard = theirs.recv(10000)
            self.assertNotIn(b"proof", heard)
            theirs.close()


class Links(OverTcp):
    def link(self, end: socket.socket, activity: Activity | None = None, seconds: float = 0.4) -> tuple[Link, Inbox]:
        inbox: Inbox = Inbox()
        joined = Joined(end, Peer(1, 1), Seal(b"k"), Seal(b"k"))
        return Link("next", joined, inbox, activity or Activity(), seconds), inbox

    def test_an_idle_link_lives_by_its_beats(self) -> None:
        first, inbox = self.link(self.a)
        second, other = self.link(self.b)
        with self.assertRaises(Exception):
            inbox.get(timeout=1.2)
        first.send({"op": "x"})
        self.assertEqual(other.get(timeout=1).header, {"op": "x"})
        first.close()
        self.assertIn("closed", other.get(timeout=1).reason)
        second.close()

    def test_a_silent_peer_is_lost_in_time(self) -> None:
        _, inbox = self.link(self.a)
        lost = inbox.get(timeout=1)
        self.assertIsInstance(lost, PeerLost)
        self.assertEqual((lost.rank, lost.reason), (1, "nothing was heard for 0.4 s"))

    def test_a_peer_that_beats_but_makes_no_step_is_lost_in_time(self) -> None:
        _, inbox = self.link(self.a)
        stuck, _ = self.link(self.b, Activity(step=7, busy=True))
        lost = inbox.get(timeout=2)
        self.assertRegex(lost.reason, "has work but has made no step")
        stuck.close()

    def test_bytes_that_the_peer_did_not_seal_lose_it(self) -> None:
        _, inbox = self.link(self.a)
        self.b.sendall(LENGTHS.pack(40, 0) + bytes(40))
        self.assertIn("did not seal", inbox.get(timeout=1).reason)


class Rings(unittest.TestCase):
    def test_three_ranks_find_each_other_past_strangers(self) -> None:
        ports = free_ports(3)
        rings: dict[int, Any] = {}

        def join(index: int) -> None:
            ends = ("127.0.0.1", ports[index]), ("127.0.0.1", ports[(index + 1) % 3])
            rings[index] = connect(identity(index), 3, *ends, Activity(), Deadlines(10, 2))

        threads = [threading.Thread(target=join, args=(index,)) for index in range(3)]
        threads[0].start()
        while True:
            try:
                stranger = socket.create_connection(("127.0.0.1", ports[0]))
                break
            except OSError:
                pass
        stranger.sendall(b"hello there, who are you?")
        for thread in threads[1:]:
            thread.start()
        for thread in threads:
            thread.join()
        stranger.close()
        for index in range(3):
            self.assertEqual(rings[index].outward.peer.rank, (index + 1) % 3)
            self.assertEqual(rings[index].inward.peer.rank, (index - 1) % 3)
        for ring in rings.values():
            ring.close()

    def test_a_neighbour_that_never_comes_is_named(self) -> None:
        ports = free_ports(2)
        with self.assertRaisesRegex(CannotConnect, "stage 1"):
            connect(
                identity(0), 2, ("127.0.0.1", ports[0]), ("127.0.0.1", ports[1]), Activity(), Deadlines(0.5, 0.5)
            )

    def test_a_port_that_is_taken_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as door:
            taken = door.getsockname()
            with self.assertRaisesRegex(CannotConnect, f"listen at 127.0.0.1:{taken[1]}: Address already in use"):
                connect(identity(0), 2, taken, ("127.0.0.1", 9), Activity(), Deadlines(0.5, 0.5))


class Cut(unittest.TestCase):
    """The head's loop over two and three stages says what it says over one."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.whole = tiny_service(Stage(tiny_model()))

    def pipeline(self, *cuts: int) -> tuple[Any, Loopback]:
        edges = [0, *cuts, 6]
        loopback = Loopback([Stage(tiny_model(), span) for span in zip(edges, edges[1:])])
        return replace(self.whole, engine=loopback.engine, spread=len(edges) - 1), loopback

    def alone(self, index: int, length: int, count: int, **named: Any) -> list[dict[str, Any]]:
        drive = Drive(self.whole)
        drive.submit("x", prompt(index, length), count, SAMPLINGS[index % 8], **named)
        return drive.run().shown("x")

    def check(self, drive: Drive, name: str, wanted: list[dict[str, Any]], delta: float = 1e-4) -> None:
        """In the company of other rows float32 sums are made in another order: up to 7e-5, in one process too."""
        got = drive.shown(name)
        self.assertEqual([row["token"] for row in got], [row["token"] for row in wanted], name)
        for mine, theirs in zip(got, wanted):
            self.assertAlmostEqual(mine["logprob"]["logprob"], theirs["logprob"]["logprob"], delta=delta)

    def test_rows_that_join_leave_and_are_cancelled_equal_one_process(self) -> None:
        for cuts in ((3,), (1, 4), (1, 2, 5)):
            service, loopback = self.pipeline(*cuts)
            drive = Drive(service, chunk=5)
            lengths = [4, 30, 2, 9, 1, 17, 12, 6]
            counts = [8 + 5 * (index % 3) for index in range(8)]
            for index in range(8):
                drive.submit(str(index), prompt(index, lengths[index]), counts[index], SAMPLINGS[index], logprobs=3)
                drive.rounds(2)
            drive.submit("gone", prompt(9, 8), 100)
            drive.rounds(4)
            drive.cancel("gone")
            drive.run()
            self.assertEqual(drive.end("gone")["reason"], "cancelled")
            for index in range(8):
                self.check(drive, str(index), self.alone(index, lengths[index], counts[index], logprobs=3))
            for held in loopback.held:
                self.assertEqual((held.batches, held.filling, held.tokens), ({}, {}, {}))
            for service in loopback.services:
                self.assertEqual((service._rows, service._holding.lengths), ({}, {}))
                self.assertEqual((service._holding._kept._rows, service._holding._kept._held), ({}, 0))
            self.assertEqual((loopback.engine._numbers, loopback.engine._drawn), ({}, {}))

    def test_a_row_alone_has_the_log_probabilities_of_one_process(self) -> None:
        service, _ = self.pipeline(2, 3)
        for index in range(8):
            drive = Drive(service)
            drive.submit("x", prompt(index, 11), 16, SAMPLINGS[index], logprobs=5)
            self.check(drive.run(), "x", self.alone(index, 11, 16, logprobs=5), 1e-5)

    def test_as_many_micro_batches_are_under_way_as_there_are_stages(self) -> None:
        service, loopback = self.pipeline(1, 4)
        drive = Drive(service, chunk=60)
        for index in range(7):
            drive.submit(str(index), prompt(index, 5), 20)
        drive.rounds(6)
        sizes = sorted(len(batch.members) for batch in drive.loop._scheduler.batches)
        self.assertEqual(sizes, [2, 2, 3])
        self.assertEqual(len(loopback.engine._flights), 3)
        drive.run()

    def test_a_single_request_is_never_computed_twice_or_ahead(self) -> None:
        service, loopback = self.pipeline(3)
        drive = Drive(service, chunk=60)
        drive.submit("x", prompt(1, 9), 12)
        drive.run()
        # 8 positions of the prompt and 12 steps, 32 floats each
        self.assertEqual(loopback.ring.outward.bytes, (8 + 12) * 32 * 4)

    def test_micro_batches_may_merge_while_they_are_under_way(self) -> None:
        service, loopback = self.pipeline(3)
        drive = Drive(replace(service, spread=1), chunk=60)
        drive.loop._scheduler._spread = 3
        for index in range(3):
            drive.submit(str(index), prompt(index, 6), 10 + 10 * index, SAMPLINGS[index], logprobs=0)
        drive.rounds(4)
        self.assertEqual(len(drive.loop._scheduler.batches), 3)
        drive.loop._scheduler._spread = 1
        drive.loop._left = True
        drive.rounds(3)
        self.assertEqual(len(drive.loop._scheduler.batches), 1)
        drive.run()
        for index in range(3):
            self.check(drive, str(index), self.alone(index, 6, 10 + 10 * index, logprobs=0))


if __name__ == "__main__":
    unittest.main()
