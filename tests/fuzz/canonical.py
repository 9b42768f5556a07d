#!/usr/bin/env python3
"""Canonical JSON and number text against a second implementation.

Random documents go through `ki-normalize --canonical`; what comes out is compared, byte for byte, with RFC 8785 text made here from
Python's own parser and its repr() of floats. The same seed gives the same documents.

usage: canonical.py KI-NORMALIZE [--seed N] [--count N | --seconds N]
"""
import argparse
import json
import math
import random
import struct
import subprocess
import sys
import time

BATCH = 2000
# What tends to go wrong: powers of two and ten, the ends of the range, the switch between notations.
EDGES = [0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e21, 999999999999999900000.0, 1e-6, 1e-7, 9.999999999999999e-7,
         2.0**53, 2.0**53 + 2, 1e22, 1e23, 0.1, 0.3, 4.35, 5e-7, 123456789012345680000.0, 2.0**63, 2.0**64]
LETTERS = 'aZ09 "\\/\b\f\n\r\t\x01\x1f\x7f\x80é€\u2028\u2029\ud7ff\ue000\uffff\U00010000\U0001f600\U0010ffff'


def number_text(value):
    """ECMAScript's Number::toString, by way of Python's shortest digits."""
    if value == 0:
        return '0'
    sign = '-' if value < 0 else ''
    mantissa, _, exponent = repr(abs(value)).partition('e')
    whole, _, part = mantissa.partition('.')
    digits = (whole + part).lstrip('0')
    point = len(whole) + int(exponent or 0) - (len(whole + part) - len(digits))
    digits = digits.rstrip('0')
    n, k = point, len(digits)
    if k <= n <= 21:
        text = digits + '0' * (n - k)
    elif 0 < n <= 21:
        text = digits[:n] + '.' + digits[n:]
    elif -6 < n <= 0:
        text = '0.' + '0' * -n + digits
    else:
        tail = '.' + digits[1:] if k > 1 else ''
        text = f'{digits[0]}{tail}e{"+" if n > 0 else "-"}{abs(n - 1)}'
    return sign + text


def canonical(value):
    """RFC 8785 text of what json.loads gave with every number a float."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode('utf-16-be'))
        return '{' + ','.join(canonical(name) + ':' + canonical(value[name]) for name in names) + '}'
    if isinstance(value, list):
        return '[' + ','.join(map(canonical, value)) + ']'
    if isinstance(value, float):
        return number_text(value)
    return json.dumps(value, ensure_ascii=False)


def reference(line):
    """Canonical text, or None where there is none."""
    def no_twins(pairs):
        if len(dict(pairs)) != len(pairs) or any('\0' in name for name, _ in pairs):
            raise ValueError('a name twice, or one with a NUL, which we refuse')
        return dict(pairs)

    def finite(text):
        value = float(text)
        if not math.isfinite(value):
            raise ValueError('not finite')
        return value

    def refuse(text):
        raise ValueError(text)

    try:
        value = json.loads(line, parse_int=finite, parse_float=finite, parse_constant=refuse, object_pairs_hook=no_twins)
        return canonical(value).encode('utf-8').decode('utf-8')
    except ValueError:
        return None


class Documents:
    """Random JSON texts, in many spellings; a few are no JSON."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def double(self):
        r = self.random
        choice = r.randrange(6)
        if choice == 0:
            return r.choice(EDGES) * r.choice([1, -1])
        if choice == 1:
            return float(r.randrange(-10**r.randrange(1, 25), 10**r.randrange(1, 25)))
        if choice == 2:
            return round(r.uniform(0, 100), r.randrange(0, 18))
        if choice == 3:
            return math.ldexp(r.choice([1.0, 1.5, 1 - 2.0**-53]), r.randrange(-1074, 1024))
        while True:
            value = struct.unpack('<d', r.randbytes(8))[0]
            if math.isfinite(value):
                return value

    def number(self):
        r = self.random
        value = self.double()
        spelling = r.randrange(6)
        if spelling == 0:
            return f'{value:.{r.randrange(0, 25)}e}'
        if spelling == 1 and abs(value) < 1e30:
            return f'{value:.{r.randrange(0, 25)}f}'
        if spelling == 2:
            return repr(value).replace('e', 'E')
        if spelling == 3 and r.randrange(20) == 0:
            return r.choice(['1e309', '-1e400', '01', '1.', '.5', '+1', 'NaN', 'Infinity', '1e', '0x1', '-'])
        return repr(value)

    def string(self):
        r = self.random
        out = []
        for _ in range(r.choice([0, 1, 2, 3, 8])):
            c = r.choice(LETTERS) if r.randrange(3) else chr(r.choice([r.randrange(0x80), r.randrange(0xd800), r.randrange(0xe000, 0x110000)]))
            if r.randrange(4) == 0:
                units = c.encode('utf-16-be')
                c = ''.join(f'\\u{units[i]:02{r.choice("xX")}}{units[i + 1]:02x}' for i in range(0, len(units), 2))
            elif c in '"\\' or c < ' ':
                c = json.dumps(c)[1:-1]
            out.append(c)
        if r.randrange(200) == 0:
            out.append(r.choice(['\\ud800', '\\udc00\\ud800', '\\x', '\t']))
        return '"' + ''.join(out) + '"'

    def space(self):
        return self.random.choice(['', '', '', ' ', '\t', '  '])

    def value(self, depth):
        r = self.random
        choice = r.randrange(8 if depth else 6)
        if choice < 3:
            return self.number()
        if choice < 5:
            return self.string()
        if choice == 5:
            return r.choice(['true', 'false', 'null'])
        items = range(r.randrange(6))
        if choice == 6:
            return '[' + ','.join(self.space() + self.value(depth - 1) + self.space() for _ in items) + ']'
        return '{' + ','.join(f'{self.space()}{self.string()}{self.space()}:{self.value(depth - 1)}' for _ in items) + '}'

    def line(self):
        return self.space() + self.value(4) + self.space()


def compare(program, lines):
    """Number of lines that differ; the first few are printed."""
    run = subprocess.run([program, '--canonical'], input='\n'.join(lines).encode('utf-8') + b'\n', stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = run.stdout.decode('utf-8').split('\n')[:-1]
    if len(found) != len(lines):
        sys.exit(f'canonical: {len(lines)} documents in, {len(found)} lines out; exit {run.returncode}: {run.stderr.decode()[-300:]}')
    wrong = 0
    for line, ours in zip(lines, found):
        theirs = reference(line) or ''
        if ours != theirs:
            wrong += 1
            if wrong <= 5:
                print(f'canonical: differs\n  document  {line!a}\n  ours      {ours!a}\n  theirs    {theirs!a}')
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--seed', type=int, default=None)
    parser.add_argument('--count', type=int, default=20000)
    parser.add_argument('--seconds', type=float, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(2**32)
    documents, done, wrong, started = Documents(seed), 0, 0, time.monotonic()
    while wrong == 0 and (done < options.count if options.seconds is None else time.monotonic() - started < options.seconds):
        lines = [documents.line() for _ in range(BATCH)]
        wrong = compare(options.program, lines)
        done += len(lines)
    took = time.monotonic() - started
    print(f'canonical {done:10d} documents {done / took:7.0f} a second, seed {seed}: {f"{wrong} DIFFER" if wrong else "none differs"}')
    return 1 if wrong else 0


sys.exit(main())
