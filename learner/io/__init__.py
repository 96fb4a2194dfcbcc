"""The learner's sockets, and what the I/O thread and the main loop pass to each other.

I/O thread   io_loop.py: intake.py, unroll_memory.py, credits.py, server_handshake.py, weight_publisher.py
both         shared_state.py, receive_queues.py: under one lock
main loop    learner_io.py
pure         unrolls.py, samples.py, rejected.py
"""
