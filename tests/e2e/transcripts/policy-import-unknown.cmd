1 berth policy import docker x
