"""The numbers of the estimate, in hundredths of a token. Written by benchmarks/fit_tokens.py: do not edit.

Fitted against o200k_base on 19 sources of real conversations (weight 1 each) and 124 other texts:
the translations that ship with Django 5.2, and for Amharic, Gujarati, Lao, Odia and Sinhala those of Debian's
packages (one source per language, weight 0.3 or 0.05 by how common it is); source code, documentation, logs,
tables, numbers, hexadecimal and base64 (weight 0.3).
"""

LEADS: dict[str, dict[str, int]] = {
    "": {"lower": -118, "Capital": -82, "UPPER": -75, "MIxed": -52},
    " ": {"lower": -145, "Capital": -96, "UPPER": -96, "MIxed": -51},
    "_": {"lower": -121, "Capital": -24, "UPPER": -71, "MIxed": 6},
    ".": {"lower": -109, "Capital": -94, "UPPER": -16, "MIxed": -48},
    "/": {"lower": -37, "Capital": 9, "UPPER": 49, "MIxed": 33},
    "-": {"lower": -83, "Capital": -32, "UPPER": -21, "MIxed": 4},
    '"': {"lower": -17, "Capital": 11, "UPPER": 29, "MIxed": -33},
    "(": {"lower": -114, "Capital": -70, "UPPER": -31, "MIxed": -70},
    "`": {"lower": 28, "Capital": -21, "UPPER": 87, "MIxed": -33},
    "\\": {"lower": -30, "Capital": 7, "UPPER": -33, "MIxed": -33},
    "$": {"lower": 13, "Capital": 83, "UPPER": 46, "MIxed": -33},
    "<": {"lower": -27, "Capital": -2, "UPPER": 44, "MIxed": -159},
    "other": {"lower": -21, "Capital": 17, "UPPER": 4, "MIxed": 69},
}
"""What a word costs beyond one token, by the character before it and by its case."""

PER_LETTER = {"lower": 2, "Capital": -1, "UPPER": 6, "MIxed": 8}
PER_LETTER_AFTER = {"space": 2, "nothing": 6, "symbol": 7}

SYMBOL_RUNS = (100, 103, 125, 156, 262, 288)
"""Symbols by the number of runs of the same character: one run, two, ..."""

FURTHER_SYMBOL_RUN = 61
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
65 6 23 -3 98 47 -8 42 3 57 31 8 4 9 114 16 87 15 32 -3 38 27 80 7 12 50 76 22
32 70 80 104 39 117 56 76 40 -38 77 39 35 101 6 86 141 28 31 78 25 61 69 129 62 90 75 13
17 90 28 107 3 116 35 19 20 59 -21 30 60 87 -1 113 80 45 49 -18 3 71 98 96 64 84 35 9
41 33 77 14 24 79 40 130 25 -17 54 30 24 85 36 57 107 73 39 61 56 72 109 39 51 73 119 -13
31 31 6 5 38 18 36 43 92 64 82 30 29 8 52 21 -27 -1 7 16 46 52 13 31 41 87 50 -23
26 78 85 82 34 22 156 151 -5 123 91 56 64 78 20 81 101 22 81 16 34 85 89 55 27 87 45 4
76 86 83 79 29 74 19 20 36 99 97 28 42 11 39 76 126 7 56 60 16 38 107 103 46 47 100 -2
32 56 89 73 8 99 117 66 24 72 86 62 76 23 4 104 85 39 94 -33 35 78 88 87 69 61 60 -1
30 1 -2 40 20 24 6 89 88 50 38 24 39 -14 -21 -45 52 69 25 5 85 22 132 28 134 19 56 45
72 114 119 56 45 68 96 99 64 74 30 92 95 51 55 47 80 115 44 143 71 102 1 136 123 67 100 42
58 58 87 2 38 41 -23 5 43 89 48 68 107 55 94 44 114 124 29 69 59 117 46 105 110 128 74 -1
15 33 62 16 1 17 61 76 28 90 51 28 120 67 21 41 129 31 44 42 38 60 75 102 -12 100 83 -26
11 9 75 68 -16 65 62 118 34 91 58 64 16 42 11 8 31 73 59 54 64 83 78 82 114 107 58 -13
36 105 -7 5 37 33 -5 44 61 73 45 77 80 44 33 165 127 56 22 18 38 50 68 58 97 41 64 -14
26 48 24 17 74 -1 20 62 35 7 16 30 27 -1 20 19 123 -13 46 49 11 35 2 10 -8 142 86 20
19 68 48 -5 19 151 98 20 25 113 113 -2 -7 111 12 21 140 -16 29 -8 3 24 84 55 94 162 96 -7
42 83 93 138 111 115 69 126 91 108 122 39 110 124 76 111 51 68 117 72 -19 110 97 104 147 130 57 33
28 72 -16 37 23 37 13 75 41 109 12 68 35 12 19 56 63 37 44 22 42 73 63 68 15 112 58 -9
54 99 11 26 8 -9 109 24 28 132 28 58 58 60 22 18 45 60 -16 6 33 93 35 126 16 89 87 -22
26 54 38 62 8 -22 56 -24 27 110 49 42 34 88 7 37 124 9 15 47 28 90 39 85 21 72 48 -25
21 -2 13 45 27 3 18 94 10 115 60 -12 9 20 77 22 131 9 25 -9 75 79 87 42 76 52 58 43
1 118 83 113 -22 77 50 104 -3 98 86 95 87 131 18 16 115 58 82 136 46 78 112 87 90 52 41 24
15 84 149 51 15 83 93 29 6 145 100 42 119 36 12 114 91 31 -1 97 108 67 35 72 81 117 105 -4
24 71 -10 87 34 143 134 -13 32 82 125 120 22 69 92 11 87 95 121 -3 81 83 123 33 92 43 110 23
46 62 57 135 48 136 95 118 64 87 100 115 37 41 7 26 104 -9 18 27 80 121 25 63 18 60 80 -36
49 113 66 94 21 132 103 94 58 104 115 110 95 68 32 108 121 99 88 91 43 93 42 68 65 55 94 25
61 87 23 95 108 118 79 -37 75 109 93 48 79 41 57 81 68 83 101 93 55 111 105 14 65 93 48 50
3 -2 -8 -27 7 4 14 2 -3 -7 2 2 9 6 14 5 32 1 -2 15 -6 -6 -2 24 12 24 42 0""".strip().splitlines()
]
"""``PAIRS[first][second]`` for neighboring letters: a to z, any other letter, the edge of the word."""
