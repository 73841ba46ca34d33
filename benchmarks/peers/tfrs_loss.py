"""TensorFlow Recommenders' retrieval task: ``tfrs_loss.py ARRAYS xla|graph ROUNDS`` prints the median as JSON.

Loss and gradients for queries and candidates, with the accidental hits removed and the sampling probability corrected.
It has no columns of a row's own, so it does less than ours. Run in the peer's environment (``install.sh``).
"""

import json
import statistics
import sys
import time

import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs


def main() -> None:
    """Measure."""
    arrays = np.load(sys.argv[1])
    query, items = tf.constant(arrays["query"]), tf.constant(arrays["items"])
    ids = tf.constant(arrays["ids"])
    chances = tf.constant(np.exp(arrays["log_count"]).astype(np.float32))
    task = tfrs.tasks.Retrieval(temperature=float(arrays["temperature"]), remove_accidental_hits=True)

    @tf.function(jit_compile=sys.argv[2] == "xla")
    def step(query, items):  # noqa: ANN001, ANN202  tensors in and out
        with tf.GradientTape() as tape:
            tape.watch([query, items])
            loss = task(query, items, candidate_sampling_probability=chances, candidate_ids=ids, compute_metrics=False)
        return loss, tape.gradient(loss, [query, items])

    seconds = []
    for turn in range(-3, int(sys.argv[3])):
        begin = time.perf_counter()
        loss, _ = step(query, items)
        loss.numpy()
        if turn >= 0:
            seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": statistics.median(seconds), "loss": float(loss.numpy()) / len(arrays["query"])}))


if __name__ == "__main__":
    main()
