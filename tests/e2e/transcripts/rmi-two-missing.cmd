1 berth rmi nothing nowhere:1
