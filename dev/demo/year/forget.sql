-- Flights whose label is not known yet are not in the table.
DELETE FROM flights.flights WHERE scheduled_departure >= @until
