"""What compiled code and Python share: the record of a launch, states of warps, barriers of a CTA, facts about a kernel."""
