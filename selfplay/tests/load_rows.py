import sys
import numpy

rows = numpy.load(sys.argv[1])
for name in rows:
    print(name, rows[name].dtype, rows[name].shape)
count = len(rows["step"])
# What a network is shown: the bitboards, then each number as a whole plane.
numbers = numpy.broadcast_to(rows["scalars"][:, :, None, None], (count, 12, 8, 8))
inputs = numpy.concatenate([rows["planes"], numbers], axis=1, dtype=numpy.float32)
assert inputs.shape == (count, 33, 8, 8)
assert numpy.allclose(rows["policy"].sum(axis=1), 1)
assert not rows["policy"][~rows["legal"]].any()
print("the targets are policies over the legal actions")
