"""What is written: arrivals, rulings, commands, the turn that binds them, its bytes and its signature."""
