1 berth history nothing
