"""The agents: public classes, one for each way of arranging work, over parts that all of them share."""
