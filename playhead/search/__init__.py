"""Finding things: text to index terms, what a person types to a question, and the words to show around a match."""
