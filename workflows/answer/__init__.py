"""From findings to the answer: reviews, drafts, synthesis."""
