"""One rank of a ring: adds up the numbers of all ranks and says what it got."""

import mlx.core as mx

mx.set_default_device(mx.cpu)
group = mx.distributed.init(strict=True, backend="ring")
total = mx.distributed.all_sum(mx.array([group.rank() + 1.0]), group=group)
mx.eval(total)
print(f"rank {group.rank()} of {group.size()} got {int(total.item())}", flush=True)
