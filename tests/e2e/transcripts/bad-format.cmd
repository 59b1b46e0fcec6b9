125 berth images --format xml
