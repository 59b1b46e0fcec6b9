1 berth pull 127.0.0.1:1/x
