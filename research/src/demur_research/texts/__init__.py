"""Hold texts for judges: answers, texts that try to mislead the judge, and bland texts."""
