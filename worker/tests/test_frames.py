"""Frames: the cases that both sides of the pipe must agree on, and what this side does with lines."""

import json
import os
import unittest
from pathlib import Path

from bushel_worker.checks import FrameError
from bushel_worker.frames import (
    TO_WORKER,
    FrameWriter,
    attempt_of,
    load_of,
    parse_line,
    submit_of,
)

from .rank import load_frame, submit_frame
from .shapes import FROM_WORKER

CASES = Path(__file__).resolve().parents[2] / "test" / "contracts" / "frames"


class Contract(unittest.TestCase):
    def check(self, name: str, check: object) -> None:
        lines = (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertGreater(len(lines), 30)
        for line in lines:
            case = json.loads(line)
            with self.subTest(case["name"]):
                if case["valid"]:
                    check(case["frame"], "")
                else:
                    with self.assertRaises(FrameError):
                        check(case["frame"], "")

    def test_frames_to_the_worker(self) -> None:
        self.check("to-worker", TO_WORKER)

    def test_frames_from_the_worker(self) -> None:
        self.check("from-worker", FROM_WORKER)


class Lines(unittest.TestCase):
    def test_parse_line_refuses_what_is_not_json(self) -> None:
        for line in (b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"kind": NaN}', b"{} {}", b'{"a":1e999}'):
            with self.subTest(line[:12]), self.assertRaises(FrameError):
                parse_line(line)

    def test_parse_line_names_the_field(self) -> None:
        frame = submit_frame("a")
        frame["sampling"]["topP"] = 2
        with self.assertRaisesRegex(FrameError, r"sampling\.topP"):
            parse_line(json.dumps(frame).encode())

    def test_parse_line_drops_unknown_fields(self) -> None:
        self.assertEqual(parse_line(b'{"kind":"cancel","attempt":"a","later":1}'), {"kind": "cancel", "attempt": "a"})

    def test_attempt_of_finds_an_address_in_a_refused_line(self) -> None:
        self.assertEqual(attempt_of(b'{"kind":"submit","attempt":"a7"}'), "a7")
        for line in (b"junk", b"[1]", b'{"attempt":5}', b"null", b"{}"):
            self.assertEqual(attempt_of(line), "")

    def test_submit_of_keeps_all_64_bits_of_a_seed(self) -> None:
        frame = submit_frame("a", sampling={"seed": "18446744073709551615"})
        self.assertEqual(submit_of(TO_WORKER(frame, "")).sampling.seed, 2**64 - 1)

    def test_load_of_takes_the_limits(self) -> None:
        self.assertEqual(load_of(TO_WORKER(load_frame(rowsMax=3), "")).limits.rows_max, 3)

    def test_frame_writer_writes_one_ascii_line(self) -> None:
        reading, writing = os.pipe()
        FrameWriter(writing).send({"text": "ü\ud800\n"})
        line = os.read(reading, 1000)
        os.close(reading)
        os.close(writing)
        self.assertEqual(line, b'{"text":"\\u00fc\\ud800\\n"}\n')


if __name__ == "__main__":
    unittest.main()
