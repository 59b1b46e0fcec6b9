1 berth pull debian:-x
