-- Flights whose label has become known.
INSERT INTO flights.flights
SELECT * FROM flights.coming WHERE scheduled_departure >= @since AND scheduled_departure < @until
