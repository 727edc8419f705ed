"""What the journals of generators say, for the checks of whole runs."""

import struct


def journal_games(path, number):
    """How many games a generator has begun, and how many of them are in flight; the layout is that of engine/src/record/journal."""
    content, at, begun, closing = path.read_bytes(), 12, set(), {}
    counter = 0
    while at + 12 <= len(content):
        length = struct.unpack_from("<I", content, at + 4)[0]
        kind, *fields = struct.unpack_from("<IIQ", content.ljust(at + 28, b"\0"), at + 12)
        if kind == 0:
            counter = struct.unpack_from("<Q", content, at + 24)[0]
        elif kind == 1:
            begun.add(tuple(fields))
        elif kind in (4, 5):
            shard = struct.unpack_from("<II", content, at + 16)
            if kind == 4:
                count = struct.unpack_from("<Q", content, at + 24)[0]
                closing[shard] = [struct.unpack_from("<IQ", content, at + 32 + 12 * place) for place in range(count)]
            else:
                begun -= set(closing.pop(shard))
        at += 12 + length
    counters = [one for generator, one in begun if generator == number]
    return max([counter, *(one + 1 for one in counters)]), len(begun)
