"""Examples of sentences by kind, the model that is trained with them, and a report of how well it recognizes the kinds."""
