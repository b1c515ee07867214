"""What a run may do and spend: boundaries, budgets, quotas, tools and the policy for them."""
