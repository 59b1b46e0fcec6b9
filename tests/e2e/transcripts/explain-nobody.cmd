1 berth explain nobody
