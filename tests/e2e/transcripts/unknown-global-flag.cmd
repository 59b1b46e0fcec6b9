125 berth --rot /x images
