"""What notebooks show of tensors, variables, tapes and findings: compact HTML without scripts."""
