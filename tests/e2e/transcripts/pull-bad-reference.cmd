1 berth pull UPPER/case
