125 berth run -itq debian
