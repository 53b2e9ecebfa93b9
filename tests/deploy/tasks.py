"""A task for celery, whose messages are files below the folder in WORK."""

import os

import app as program
from celery import Celery

folder = os.environ["WORK"]
app = Celery("tasks", broker="filesystem://", backend=f"file://{folder}")
app.conf.broker_transport_options = {
    "data_folder_in": f"{folder}/queue",
    "data_folder_out": f"{folder}/queue",
    "control_folder": f"{folder}/control",
}


@app.task
def work(number):
    return program.work(number)
