125 berth run -it --pull never nothing
