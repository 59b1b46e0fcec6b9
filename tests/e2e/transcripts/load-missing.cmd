1 berth load --input nowhere.tar
