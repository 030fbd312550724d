"""The sentences and reactions that are read: ten of each for a first look, and ten that were
written later.
"""

from __future__ import annotations

ENGLISH = (
    "The cat sat on the mat because it was tired.",
    "Once upon a time there was a little girl who lived near the forest.",
    "Tom gave his sister the red ball, and she threw it over the fence.",
    "It rained all day, so the children stayed inside and played with blocks.",
    "The old man opened the door slowly and looked into the dark room.",
    "My mother said that I could have a cookie after dinner.",
    "Birds fly south in winter when the days become short and cold.",
    "The big dog was afraid of the small mouse.",
    "If you mix blue paint with yellow paint, you will get green paint.",
    "She wanted to read the book again, but her brother had lost it at school.",
)
REACTIONS = (
    "CC(=O)O.OCC>>CC(=O)OCC",
    "CC(=O)Cl.NCc1ccccc1>>CC(=O)NCc1ccccc1",
    "O=C(O)c1ccccc1.CO>>COC(=O)c1ccccc1",
    "CCBr.[OH-]>>CCO",
    "C=C.BrBr>>BrCCBr",
    "O=[N+]([O-])c1ccccc1>>Nc1ccccc1",
    "C=CC=C.C=CC(=O)OC>>COC(=O)C1CCC=CC1",
    "Cc1ccccc1>>O=C(O)c1ccccc1",
    "CI.CC(=O)[O-]>>COC(C)=O",
    "CC(C)=O.C[Mg]Br>>CC(C)(C)O",
)
FRESH_ENGLISH = (
    "The farmer milked his cows before the sun came up over the hills.",
    "Our train was late again, so we drank tea at the station and waited.",
    "A tall woman in a green coat asked me the way to the museum.",
    "Nobody knew why the lights in the kitchen went out at midnight.",
    "He cut the bread into thick slices and put butter and honey on them.",
    "When the bell rang, all the students closed their books and ran outside.",
    "The river is too wide to swim across, but there is a bridge nearby.",
    "I have never seen so many stars as on that night in the desert.",
    "Her grandfather repairs clocks and old radios in a small shop by the harbour.",
    "They painted the walls white because the room had only one small window.",
)
FRESH_REACTIONS = (
    "CCO>>CC=O",
    "CCN.CI>>CCNC",
    "CC=O.C#N>>CC(O)C#N",
    "c1ccccc1.CC(=O)Cl>>CC(=O)c1ccccc1",
    "OCCCCBr>>C1CCOC1",
    "Brc1ccccc1.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
    "CC(C)(C)OC(=O)NCC>>CCN",
    "O=Cc1ccccc1.CC(C)=O>>CC(=O)C=Cc1ccccc1",
    "Fc1ccccc1[N+](=O)[O-].CN>>CNc1ccccc1[N+](=O)[O-]",
    "CS(=O)(=O)Cl.OCC>>CCOS(C)(=O)=O",
)
"""Written when questions and rules stood already, and read once."""

TEXTS = {
    "minilm": (ENGLISH, FRESH_ENGLISH),
    "stories15m": (ENGLISH, FRESH_ENGLISH),
    "albert-chem": (REACTIONS, FRESH_REACTIONS),
}
