"""A few architectures, each unlike the others, through the real pipeline's code. The whole table is made by
bench.architectures."""

import unittest

from bench.architectures import pipeline

# Windows, recurrent layers, latent attention, fewer caches than layers, positions from another layer's cache.
EQUAL = ("gemma3_text", "qwen3_next", "deepseek_v3", "nemotron_h", "bailing_moe_linear", "gptj")
REFUSED = {"deepseek_v41": "share compressed keys", "longcat_flash_ngram": "layers share caches"}


class Zoo(unittest.TestCase):
    def test_stages_give_the_answers_of_a_whole_model(self) -> None:
        for name in EQUAL:
            with self.subTest(name):
                verdict = pipeline(name)
                self.assertEqual((verdict.word, verdict.why), ("equal", ""))

    def test_what_cannot_be_cut_is_refused_with_the_reason(self) -> None:
        for name, words in REFUSED.items():
            with self.subTest(name):
                verdict = pipeline(name)
                self.assertEqual(verdict.word, "refused")
                self.assertIn(words, verdict.why)


if __name__ == "__main__":
    unittest.main()
