"""Calls to language models. May import rules, facts, core, settings and errors.

A call passes through these wrappers, in this order; each implements the `Caller` protocol of `call.py`:

1. `reply_cache`: returns a known reply from disk; equal calls in flight wait for one reply
2. `concurrency_limit`: waits for a free slot
3. `circuit_breaker`: fails at once while the model is down
4. `retry`: sends again after a timeout, a rate limit or an outage, with a growing wait
5. `usage_meter`: refuses what might exceed the budget, and counts every attempt
6. `provider`: sends one request; its own timeout raises `ModelTimeout`, and `vendor_errors` translates vendors' errors

`client.py` puts them together. Vendor packages are imported only when a call is sent.
"""
