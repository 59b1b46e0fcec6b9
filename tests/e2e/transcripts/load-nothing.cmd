1 berth load
