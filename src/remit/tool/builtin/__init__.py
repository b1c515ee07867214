"""Tools that come with remit: safe in the hands of a model that means harm, and off until an operator names them."""
