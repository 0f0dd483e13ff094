"""Sets of questions that are made here with a model: LongReason's procedure, sense-making QA."""
