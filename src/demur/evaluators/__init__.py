"""The evaluators: Runnables from Sample to Evaluation."""
