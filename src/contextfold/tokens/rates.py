"""The numbers of the estimate, in hundredths of a token. Written by benchmarks/fit_tokens.py: do not edit.

Fitted against o200k_base on 19 sources of real conversations (weight 1 each) and 124 other texts:
the translations that ship with Django 5.2, and for Amharic, Gujarati, Lao, Odia and Sinhala those of Debian's
packages (one source per language, weight 0.3 or 0.05 by how common it is); source code, documentation, logs,
tables, numbers, hexadecimal and base64 (weight 0.3).
"""

LEADS: dict[str, dict[str, int]] = {
    "": {"lower": -127, "Capital": -91, "UPPER": -84, "MIxed": -70},
    " ": {"lower": -156, "Capital": -105, "UPPER": -105, "MIxed": -50},
    "_": {"lower": -131, "Capital": -31, "UPPER": -80, "MIxed": -15},
    ".": {"lower": -119, "Capital": -103, "UPPER": -25, "MIxed": 47},
    "/": {"lower": -47, "Capital": 0, "UPPER": 40, "MIxed": 9},
    "-": {"lower": -93, "Capital": -41, "UPPER": -30, "MIxed": -40},
    '"': {"lower": -26, "Capital": 21, "UPPER": 22, "MIxed": 8},
    "(": {"lower": -123, "Capital": -77, "UPPER": -40, "MIxed": -54},
    "`": {"lower": 19, "Capital": -30, "UPPER": 79, "MIxed": 104},
    "\\": {"lower": -40, "Capital": 28, "UPPER": -33, "MIxed": 37},
    "$": {"lower": 3, "Capital": 75, "UPPER": 37, "MIxed": 163},
    "<": {"lower": -37, "Capital": -11, "UPPER": 35, "MIxed": -139},
    "other": {"lower": -31, "Capital": 7, "UPPER": -5, "MIxed": 25},
}
"""What a word costs beyond one token, by the character before it and by its case."""

PER_LETTER = {"lower": 2, "Capital": 0, "UPPER": 7, "MIxed": 11}
PER_LETTER_AFTER = {"space": 4, "nothing": 8, "symbol": 9}

SYMBOL_RUNS = (99, 103, 124, 155, 260, 294)
"""Symbols by the number of runs of the same character: one run, two, ..."""

FURTHER_SYMBOL_RUN = 55
REPEATED_SYMBOL = 5

ALPHABETS: dict[str, tuple[int, int]] = {
    "Arabic": (-94, 36),
    "Armenian": (-39, 32),
    "Bengali": (-97, 45),
    "Cyrillic": (-48, 30),
    "Devanagari": (-85, 39),
    "Ethiopic": (-56, 193),
    "Georgian": (-48, 32),
    "Greek": (-82, 39),
    "Gujarati": (-108, 48),
    "Gurmukhi": (-86, 72),
    "Hangul": (-37, 48),
    "Hebrew": (-84, 43),
    "Kannada": (-18, 36),
    "Khmer": (-38, 57),
    "Lao": (9, 182),
    "Malayalam": (-4, 30),
    "Myanmar": (11, 49),
    "Oriya": (-26, 104),
    "Sinhala": (-100, 66),
    "Tamil": (-16, 32),
    "Telugu": (-22, 40),
    "Thai": (-58, 37),
    "other": (84, 84),
    "Russian": (-45, 19),
}
"""What a word of each script costs beyond one token: to begin with, and per letter."""

FOREIGN_LETTER = 55

SIGNS: dict[str, int] = {
    "Han, common": 75,
    "Han, most frequent": 39,
    "Han, rare": 109,
    "Han, traditional": 126,
    "Hiragana": 52,
    "Katakana": 58,
    "box drawing": 29,
    "dingbats": 120,
    "emoji": 141,
    "joiners": 101,
    "other": 100,
    "punctuation": 105,
    "symbols": 115,
    "wide punctuation": 196,
}
"""One character of each class."""

PAIRS = [
    [int(number) for number in row.split()]
    for row in """
63 4 21 -5 94 44 -10 40 0 55 29 6 2 6 111 14 84 13 29 -6 36 25 78 5 9 48 68 25
30 68 78 101 37 114 53 73 37 -40 74 37 32 99 3 83 138 26 29 76 22 58 66 127 60 87 73 17
14 88 26 104 1 113 32 16 18 57 -24 27 58 84 -4 110 77 43 46 -20 1 68 94 94 61 78 34 12
38 29 75 11 21 76 38 127 23 -19 52 27 21 82 34 54 104 71 34 59 53 70 106 36 49 70 114 -10
28 29 4 2 36 15 33 40 90 61 79 28 27 5 49 19 -30 -3 4 14 43 50 10 28 38 85 48 -19
23 75 83 80 32 20 153 148 -8 120 88 53 61 75 18 78 98 20 78 13 31 82 86 52 25 85 42 8
73 83 80 76 27 72 17 18 34 96 95 25 40 8 37 73 123 4 54 57 14 35 104 100 44 44 97 2
29 53 86 70 5 97 113 63 22 69 83 59 73 21 1 101 82 37 92 -35 33 75 85 85 67 58 59 2
27 -1 -4 37 17 22 4 87 86 47 35 21 37 -17 -23 -48 49 66 22 3 82 19 130 26 131 17 54 48
70 112 117 53 42 66 93 96 61 71 28 89 91 48 52 44 77 113 40 141 68 100 -2 134 121 64 98 46
56 55 84 0 35 39 -25 3 40 86 45 66 105 52 91 41 112 122 27 66 57 115 43 103 108 125 69 2
13 29 59 14 -2 14 58 73 25 88 49 25 116 64 18 38 127 28 41 40 35 58 72 100 -14 98 80 -23
8 6 72 66 -19 62 59 117 32 87 54 61 13 39 8 5 28 71 56 51 61 81 76 79 111 104 55 -10
33 102 -9 3 35 31 -8 41 59 70 42 75 77 41 31 162 123 51 20 15 36 48 65 55 95 39 62 -11
22 46 21 15 72 -4 17 59 33 4 14 28 24 -4 17 16 121 -15 44 46 9 32 0 7 -10 140 82 24
16 65 45 -7 17 149 96 17 21 111 111 -5 -9 108 10 18 137 -18 26 -10 1 15 81 53 92 160 92 -4
39 81 90 135 109 112 66 124 88 106 118 37 107 122 73 109 47 65 115 70 -21 109 94 103 144 127 53 36
26 69 -19 35 21 34 11 72 38 106 9 65 32 9 17 53 60 34 42 19 39 71 61 65 13 108 55 -5
51 96 9 23 6 -12 106 21 26 130 25 55 56 58 20 15 42 58 -18 3 30 90 32 123 13 86 84 -19
24 52 36 59 6 -25 53 -27 25 107 47 40 31 85 5 35 120 6 13 45 26 87 36 82 19 70 44 -22
18 -4 10 43 24 0 15 91 7 113 57 -15 7 17 74 19 128 7 22 -12 72 77 84 40 74 50 57 47
-1 115 81 110 -25 74 47 101 -5 95 83 93 84 128 16 13 113 55 79 133 43 75 108 84 87 50 38 27
12 82 147 49 13 81 90 26 4 144 98 40 116 33 9 112 88 28 -4 95 106 65 33 69 79 114 99 0
21 68 -12 84 32 140 131 -15 30 79 123 117 19 66 89 9 84 92 119 -6 78 79 121 30 90 40 110 26
43 60 55 132 45 134 92 115 62 84 98 112 35 39 4 23 102 -12 16 24 77 118 22 60 16 58 77 -32
46 110 64 89 18 128 100 91 55 101 113 107 93 66 30 106 118 96 85 89 41 90 40 65 63 52 90 28
58 86 11 89 103 117 77 -37 69 108 90 46 75 35 51 78 67 81 98 91 52 108 101 13 60 90 74 56
7 2 -4 -23 11 7 18 6 1 -3 6 6 13 9 17 8 36 5 1 19 -3 -2 1 28 16 28 41 30""".strip().splitlines()
]
"""``PAIRS[first][second]`` for neighbouring letters: a to z, any other letter, the edge of the word."""
