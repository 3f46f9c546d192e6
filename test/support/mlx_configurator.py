"""Runs MLX's own configurator on captures: its code is untouched, only `ssh` answers from a file.

Reads a JSON list of clusters on stdin and prints a JSON list of what MLX computed for each:
the hostfile, or the reason it gave up, and the DOT text.
"""

import contextlib
import io
import json
import sys
from types import SimpleNamespace

import mlx._distributed_utils.config as config
from mlx._distributed_utils.common import Host


def answer(hosts, argv):
    """What `ssh HOST COMMAND…` would print."""
    host = hosts[argv[1]]
    command = argv[2:]
    if command[0] == "system_profiler":
        return host["thunderbolt"]
    if command[0] == "networksetup":
        return host["ports"]
    if command[0] == "ibv_devices":
        return host["devices"]
    if command[:2] == ["ipconfig", "getifaddr"]:
        return host["addresses"].get(command[2], "")
    raise AssertionError(f"unexpected command {command}")


def configure(cluster):
    hosts = {host["name"]: host for host in cluster["hosts"]}

    def run(argv, capture_output=False, text=False, **_):
        out = answer(hosts, argv)
        return SimpleNamespace(stdout=out if text else out.encode(), returncode=0)

    config.run = run
    config.input = lambda *_: ""
    results = {}
    for key, dot in (("dot", True), ("hostfile", False)):
        args = SimpleNamespace(
            verbose=False,
            dot=dot,
            backend=cluster["backend"],
            env=[],
            auto_setup=False,
            output_hostfile=None,
        )
        named = [Host(i, name, [], []) for i, name in enumerate(hosts)]
        sshinfo = [config.SSHInfo(True, False) for _ in named]
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                config.prepare_tb_hostfile(args, named, sshinfo)
        except SystemExit:
            results["refused"] = err.getvalue()
            continue
        text = out.getvalue()
        results[key] = text if dot else json.loads(text.split("========\n")[-1])
    return results


print(json.dumps([configure(cluster) for cluster in json.load(sys.stdin)]))
