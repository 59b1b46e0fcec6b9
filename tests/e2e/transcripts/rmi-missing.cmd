1 berth rmi nothing
