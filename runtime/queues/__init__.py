"""The task queues as this process serves and configures them."""
