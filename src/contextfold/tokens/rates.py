"""The numbers of the estimate, in hundredths of a token. Written by ``benchmarks/fit_tokens.py``: do not edit.

Fitted against o200k_base on 19 sources of real conversations (weight 1 each) and 119 other texts:
the translations that ship with Django 5.2 (one source per language, weight 0.1), and source code, documentation,
logs, tables, numbers, hexadecimal and base64 (weight 0.3).
"""


LEADS: dict[str, dict[str, int]] = {
    '': {'lower': -65, 'Capital': -40, 'UPPER': -34, 'MIxed': -24},
    ' ': {'lower': -79, 'Capital': -48, 'UPPER': -49, 'MIxed': -15},
    '_': {'lower': -66, 'Capital': 0, 'UPPER': -31, 'MIxed': 14},
    '.': {'lower': -57, 'Capital': -47, 'UPPER': 5, 'MIxed': 50},
    '/': {'lower': -10, 'Capital': 24, 'UPPER': 46, 'MIxed': 25},
    '-': {'lower': -39, 'Capital': -6, 'UPPER': 5, 'MIxed': -9},
    '"': {'lower': 3, 'Capital': 35, 'UPPER': 36, 'MIxed': 26},
    '(': {'lower': -62, 'Capital': -30, 'UPPER': -8, 'MIxed': -17},
    '`': {'lower': 35, 'Capital': 3, 'UPPER': 78, 'MIxed': 88},
    '\\': {'lower': -5, 'Capital': 42, 'UPPER': 0, 'MIxed': 16},
    '$': {'lower': 24, 'Capital': 71, 'UPPER': 43, 'MIxed': 56},
    '<': {'lower': -3, 'Capital': 18, 'UPPER': 44, 'MIxed': -65},
    'other': {'lower': 1, 'Capital': 26, 'UPPER': 16, 'MIxed': 35},
}
"""What a word costs beyond one token, by the character before it and by its case."""

PER_LETTER = {'lower': 6, 'Capital': 4, 'UPPER': 9, 'MIxed': 11}
PER_LETTER_AFTER = {'space': 8, 'nothing': 11, 'symbol': 11}

SYMBOL_RUNS = (99, 103, 125, 162, 263, 289)
"""Symbols by the number of runs of the same character: one run, two, ..."""

FURTHER_SYMBOL_RUN = 55
REPEATED_SYMBOL = 5

SCRIPTS: dict[str, int] = {
    'Arabic': 37,
    'Arabic, other languages': 108,
    'Armenian': 42,
    'Bengali': 48,
    'Cyrillic': 34,
    'Cyrillic, not Russian': 141,
    'Devanagari': 46,
    'Georgian': 40,
    'Greek': 43,
    'Gujarati': 100,
    'Gurmukhi': 79,
    'Han, common': 62,
    'Han, rare': 126,
    'Han, traditional': 125,
    'Hangul': 70,
    'Hebrew': 47,
    'Hiragana': 52,
    'Kannada': 51,
    'Katakana': 57,
    'Khmer': 65,
    'Malayalam': 45,
    'Myanmar': 67,
    'Tamil': 49,
    'Telugu': 59,
    'Thai': 42,
    'box drawing': 28,
    'dingbats': 123,
    'emoji': 167,
    'joiners': 103,
    'other': 101,
    'punctuation': 102,
    'symbols': 116,
    'wide punctuation': 219,
}
"""One character of each script."""

PAIRS = [[int(number) for number in row.split()] for row in """
33 -9 4 -12 56 26 -15 22 -7 30 14 -6 -9 -4 65 1 50 0 11 -15 15 6 40 -5 -5 25 48 13
11 35 40 58 17 66 28 39 16 -37 39 14 10 58 -4 46 85 11 7 39 4 31 37 82 31 45 37 6
-3 49 8 57 -11 65 11 0 -3 40 -30 3 27 49 -16 61 44 21 20 -24 -12 33 55 52 32 40 32 4
19 12 41 -2 6 42 18 72 5 -13 21 12 12 45 14 26 61 41 14 36 28 39 54 11 26 43 69 -12
11 12 -8 -9 13 1 17 17 56 45 42 7 8 -6 24 3 -23 -13 -7 0 32 23 -2 9 10 46 20 -20
7 42 46 43 11 2 92 95 -15 73 48 23 29 42 3 43 57 4 44 -5 13 46 50 24 11 52 25 -1
37 48 44 50 5 35 1 -3 10 55 64 7 15 -8 15 39 72 -5 31 32 -1 16 71 55 21 18 57 -3
10 27 51 42 -3 50 65 35 6 43 46 41 37 3 -6 61 56 19 54 -37 14 40 52 48 36 27 27 -1
8 -9 -12 16 1 7 -1 45 48 29 19 7 17 -21 -24 -43 28 34 7 -5 39 2 79 6 68 -1 27 27
31 62 65 35 17 39 57 48 28 35 27 50 57 44 31 19 41 62 12 76 28 48 1 79 69 53 54 25
32 33 50 -9 17 16 -20 11 18 40 19 31 59 26 49 16 64 70 12 38 32 84 7 55 64 69 38 -2
0 14 28 2 -11 2 41 33 9 44 23 5 70 19 5 17 78 6 16 14 15 25 32 58 -18 58 61 -20
-4 -7 41 35 -22 31 27 63 9 55 20 34 -2 24 -6 -9 8 37 28 28 32 45 35 46 64 68 33 -12
14 52 -17 -8 14 9 -18 26 28 35 19 41 39 22 12 101 70 31 0 -1 16 19 30 27 53 21 41 -13
8 21 7 2 49 -9 6 32 15 -2 -2 11 9 -12 -2 2 73 -21 21 23 -4 11 -9 -10 -14 76 50 10
4 34 20 -13 1 88 53 -2 5 54 61 -14 -23 69 -5 2 83 -22 11 -16 -12 3 46 26 52 101 58 -7
22 45 51 93 62 67 33 69 48 59 66 19 63 70 38 62 22 37 65 45 -29 62 53 57 84 75 26 18
9 32 -23 13 5 14 -4 49 15 63 -1 34 13 -7 1 26 32 13 16 4 19 37 30 39 0 57 33 -8
25 58 -6 9 -5 -15 67 6 8 63 10 29 30 19 7 0 15 31 -23 -7 13 59 15 70 -2 46 46 -18
6 28 14 30 -6 -28 24 -32 6 64 34 16 10 51 -7 15 70 -6 -1 22 12 54 4 47 0 48 27 -19
5 -13 -5 22 7 -3 2 55 -4 67 33 -18 -5 1 45 -1 77 -6 5 -17 39 53 48 12 44 23 34 29
-8 69 41 64 -23 40 20 58 -11 56 48 53 54 75 4 0 67 19 44 80 22 38 64 46 56 26 13 14
0 44 92 21 -5 44 48 5 -11 90 53 13 68 6 -8 53 51 8 -16 49 74 32 12 36 37 68 90 -6
15 35 -18 43 15 85 77 -19 9 39 73 65 5 35 53 -5 52 52 71 -12 42 44 73 10 54 16 58 13
20 30 27 75 23 74 55 66 27 50 63 62 15 17 -10 8 58 -9 5 8 42 61 11 27 3 23 41 -28
24 59 27 58 10 76 40 51 30 59 68 66 48 26 14 69 71 56 49 59 19 53 19 34 27 27 51 15
36 55 4 46 65 82 43 9 57 58 44 28 40 14 42 48 3 48 56 59 47 70 44 24 36 42 50 27
-1 -5 -6 -21 2 0 7 -3 -4 -4 0 -2 3 2 7 0 18 -5 -6 7 -6 -8 -4 13 7 13 27 23""".strip().splitlines()]
"""``PAIRS[first][second]`` for neighbouring letters: a to z, any other Latin letter, the edge of the word."""
