#!/usr/bin/env python3
"""Six steps with recurgentd: a session, a call, a stream, a verdict, the history, the tools.

    PYTHONPATH=clients/python python3 examples/python/six_steps.py
"""

import recurgent

client = recurgent.Client()  # RECURGENT_URL, RECURGENT_TOKEN

session = client.session("calculator")
print("session:", session.id)

calculator = session.role()
reply = calculator.add.reply(2, 3)  # calculator.add(2, 3) is the value alone
print("call:", reply.value)

with calculator.sqrt.stream(2) as running:
    events = [event.type for event in running]
    print("stream:", *events, running.reply().value)

verdict = client.right(reply.call_id)
print("verdict:", verdict["verdict"], verdict["example_state"])

print("history:", *(record["method_name"] + "=" + record["outcome_summary"]["status"] for record in session.history()))

print("tools:", *(tool["role"] for tool in client.tools()))
